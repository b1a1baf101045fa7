/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One PMI step at a node: the server engine, the node's ranks, the memory they
 * share, the way to srun and back, and the step's status. Neighbours are reached
 * through peers, which outlive it.
 *
 *   service.c          life, the engine's operations, what neighbours report
 *   ranks.c            the ranks' connections and ends
 *   slot_wakes.c       what wakes the agent and the ranks through shared memory
 *   control_path.c     control messages between the step and srun
 *   srun_link.c        the connection to srun
 *   service_status.c   srun's questions, and who waits long
 *   store_link.c       the store of the step, and its messages to neighbours
 *   sync_door.c        clients of the store at this node's socket
 *   torch_door.c       clients of the store that speak PyTorch's TCPStore; torch_peers.c:
 *                      which of them may
 *   trace.c            time stamps for a trace of start-up
 *
 * All calls are in the loop's thread. Operations that the engine calls (struct
 * pmi_host_ops) only queue and write: what fails there is reported to the
 * engine from the loop, never from inside the call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/peers/peers.h"
#include "agent/setup.h"
#include "libengine/pmi_server.h"

struct node;
struct service;

/* Upcalls of the peers; the argument is the service. */
extern const struct peers_ops service_peers_ops;

/*
 * The service takes over all of `fds` but listener and connect_back. `node` and `step`
 * outlive it. 0 or a negative errno; *out is to be stopped and destroyed then, too,
 * unless it is NULL.
 */
int service_create(struct service **out, struct node *node,
		   const struct pmi_step *step, const struct agent_fds *fds);
/* Where the node stands in the tree of the step. */
const struct tree_place *service_place(const struct service *s);
/* Begin to serve. 0 or a negative errno. */
int service_begin(struct service *s, struct peers *peers);
/* Close all handles and descriptors. NULL is allowed. */
void service_stop(struct service *s);
/* After the loop has ended. NULL is allowed. */
void service_destroy(struct service *s);

/* From the host: a control message that srun would send. */
void service_control(struct service *s, struct payload *frame);
/* Append the answer to CONTROL_QUERY. 0 or the errors of buf_append. */
int service_status_pack(struct service *s, struct buf *out);
/*
 * From the host: the path of the node's topology as a file; NULL: there will be none.
 */
void service_topology_known(struct service *s, const char *path);
/* From the host: see agent_holder_found. */
void service_holder_found(struct service *s, int found);

/* ---- leaving ---- */

/* The node's ranks end. */
void service_prepare_leave(struct service *s);
/* True: all ranks have ended, and no collective that they entered is under way. */
bool service_is_done(const struct service *s);
