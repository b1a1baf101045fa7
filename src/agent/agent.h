/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent of one node: hosts the PMI server engine, the ranks' connections,
 * the links to the neighbours in the tree and the connection to srun, in one
 * event loop. The program pmi2x-agent is one; so that others can be, it knows
 * nothing of processes, rights or Slurm: what it needs of its surroundings it
 * asks of a host.
 *
 * All calls, and all calls of the host's, are in the loop's thread. Descriptors
 * are non-blocking and CLOEXEC.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "agent/host.h"
#include "agent/setup.h"
#include "libio/registration.h"
#include "libpmi/cause.h"
#include "libutil/log.h"

struct agent;
struct loop;

/*
 * Begin to serve, in a loop that has been opened. `setup`, `host` and `log` must outlive
 * the agent (of `setup` the secret is not needed any more); `fds` are taken over, also on failure. When it has failed (a negative
 * errno, after a line in the log) the loop ends by itself, and agent_free is due.
 * But when there is no memory for an agent (*out is NULL) nothing has been done.
 */
int agent_open(struct agent **out, struct loop *loop, const struct setup *setup,
	       const struct agent_fds *fds, const struct agent_host *host,
	       const struct log_hook *log);

/*
 * The node's ranks have ended: finish what they entered, flush, say goodbye,
 * within options.drain_ms. Then the loop ends.
 *
 * With options.stays it does so only when the nodes below that are connected have
 * left, and serves them until then: what members of a group on other nodes say to each
 * other may pass here.
 */
void agent_leave(struct agent *a);

/*
 * The process that counts this node's ranks, the host, has died: close the links
 * without a goodbye, as a node's that is dead. Where no neighbour would notice, srun is
 * told before. Then the loop ends.
 */
void agent_host_died(struct agent *a);

/*
 * When the agent has left, and then the callbacks of all handles that were closed with it
 * have been due: at the end of that turn of the loop at the earliest. NULL is allowed.
 */
void agent_free(struct agent *a);

/* ---- answers of the host ---- */

/* 0 and an address, or a negative errno. */
void agent_node_found(struct agent *a, uint32_t node_id, int rc,
		      const struct sockaddr_storage *addr);
/*
 * 0 or a negative errno; -ENOENT or -ECONNREFUSED: the node has answered, and has
 * nobody whom it could hand the message to.
 */
void agent_connect_back_sent(struct agent *a, uint32_t node_id, int rc);
void agent_rank_ended(struct agent *a, uint32_t slot,
		      const struct pmi_exit *end);
/* The host has taken the registration of a rank; its descriptors are taken over. */
void agent_rank_registered(struct agent *a, struct registration *reg);
/*
 * With agent_host.send: a frame of the neighbour at a position has come; what is wrong with
 * it is that neighbour's fault. And: there will be no more of it, for people.
 */
void agent_frame(struct agent *a, uint32_t position, enum frame_type type,
		 const void *head, size_t head_len, struct payload *body);
void agent_neighbour_lost(struct agent *a, uint32_t position, const char *why);
/*
 * With agent_host.pmix_send: a message of who serves the node's PMIx clients. 0 or a
 * negative errno: it is invalid. And: nobody serves them any more, for people.
 */
int agent_pmix_message(struct agent *a, struct payload *message);
void agent_pmix_lost(struct agent *a, const char *why);
/* A control message for this node, see agent_host.control. */
void agent_control(struct agent *a, struct payload *frame);
/*
 * Append what it would answer srun with that asks for this node's status (libpmi/status.h).
 * 0, the errors of buf_append, or -ENOTCONN: it has left.
 */
int agent_status(struct agent *a, struct buf *out);
/* The result of holder_find: the number of a process, or a negative errno. */
void agent_holder_found(struct agent *a, int found);
/* The path of the file, or NULL: there will be none. */
void agent_topology_known(struct agent *a, const char *path);
