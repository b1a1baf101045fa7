/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent of one node: a thread with one event loop that hosts the PMI
 * server engine, the ranks' connections, the links to the neighbours in the
 * tree and the connection to srun. Embedded by the Slurm plugin and by the
 * fake server.
 *
 * Descriptors are non-blocking and CLOEXEC. Only agent_told and agent_stop may
 * be called from a thread other than the creator's.
 */
#ifndef PMI2X_AGENT_H
#define PMI2X_AGENT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "libio/secret.h"
#include "libpmi/server.h"
#include "libutil/log.h"

struct agent;

/* What the program that embeds the agent provides. */
struct agent_host {
	/*
	 * Address of a node (its port is ignored). 0 or a negative errno;
	 * -EAGAIN, unless `may_block`: it has to be looked up. With `may_block`
	 * it is called in a thread of its own, several at the same time.
	 */
	int (*node_address)(void *arg, uint32_t node_id, bool may_block,
			    struct sockaddr_storage *out);
	/*
	 * Hand `data` to agent_told of another node over a path that the site
	 * authenticates. Blocks; called in a thread of its own. 0 or negative
	 * errno; -ENOENT or -ECONNREFUSED: the node has answered, and has
	 * nobody whom it could hand the data to. NULL: there is none.
	 */
	int (*tell_node)(void *arg, uint32_t node_id, const void *data,
			 size_t len);
	/*
	 * End the step because srun cannot be told to. Blocks; in a thread of
	 * its own. NULL: nothing can be done.
	 */
	void (*kill_step)(void *arg, const char *why);
	/*
	 * How the process of the rank in `slot` has ended: false as long as that
	 * is not known. In the agent thread; must not block. NULL: it never is.
	 */
	bool (*rank_exit)(void *arg, uint32_t slot, struct pmi_exit *end);
	void *arg;
};

struct agent_options {
	struct secret secret;   /* of the step */
	/* Where to listen, its port ignored; AF_UNSPEC: everywhere. */
	struct sockaddr_storage bind;
	/*
	 * `bind` is an address in a network of its own: neighbours do not find
	 * each other by node_address, but tell each other theirs.
	 */
	bool addresses_told;
	uint16_t port_first;    /* of the range to listen in; 0: any port */
	uint16_t port_last;
	/* srun, port included; AF_UNSPEC: none. */
	struct sockaddr_storage launcher;
	size_t region_size;     /* bytes reserved; 0: no shared memory */
	uint32_t handshake_ms;  /* a connection must prove itself within */
	uint32_t tell_after_ms; /* a connect without answer, then tell_node */
	uint32_t connect_ms;    /* give a neighbour up after */
	uint32_t absent_ms;     /* one that refuses so long may have ended: ask,
	                           and again after as long */
	uint32_t drain_ms;      /* bound of agent_stop */
	uint32_t stall_ms;      /* tell srun of a collective that waits longer,
	                           and at each doubling; 0: never */
	uint32_t collective_ms; /* then it fails; 0: never */
	bool end_on_failure;    /* the step, when a collective fails */
	bool no_kill;           /* a node that is lost does not end the step */
	bool trace;             /* record time stamps and send them to srun */
	int64_t prefork_ns;     /* with trace: when the host began, trace_now() */
	uint32_t dead_peer_ms;  /* TCP_USER_TIMEOUT and keep-alive */
	/*
	 * Listening unix socket for told messages in the form slurmd delivers
	 * them (u32 uid, u32 length, network order, data); -1: none. Owned by
	 * the agent once agent_prepare has begun, also when it fails.
	 */
	int tell_fd;
	int rank_fd;            /* number for agent_rank_takes_place, or the next
	                           free one above */
	uid_t tell_uid;         /* whose messages (besides root's) count */
	uint16_t protocol;      /* PROTOCOL_VERSION, but in tests */
};

/* Defaults for everything but secret, launcher and tell_fd. */
void agent_options_init(struct agent_options *o);

/*
 * Bind, listen, create the object of the results region and the registration
 * socket. Connects to nobody. `step` and `host` must outlive the agent; options
 * are copied. 0 or a negative errno with a line in the log.
 *
 * Until somebody in the step uses PMI the agent is no more than that and, after
 * agent_run, a thread that waits.
 */
int agent_prepare(struct agent **out, const struct pmi_step *step,
		  const struct agent_options *options,
		  const struct agent_host *host, const struct log_hook *log);

/*
 * Start the thread. On failure, a negative errno with a line in the log, ranks
 * cannot register any more; agent_stop is still due.
 */
int agent_run(struct agent *a);

/* Both. There is no agent when it fails. */
int agent_start(struct agent **out, const struct pmi_step *step,
		const struct agent_options *options,
		const struct agent_host *host, const struct log_hook *log);

/*
 * The socket over which the children of this process register ranks: inherit it
 * across fork. Owned by the agent.
 */
int agent_registration_fd(const struct agent *a);

/*
 * In a child, before exec, as the rank's user: make the rank's connection and
 * give the agent its end. Writes the descriptor for PMI_FD (not CLOEXEC). Uses
 * no memory of the agent but the descriptor. 0 or a negative errno.
 */
int agent_register_rank(int registration_fd, uint32_t slot, int *pmi_fd);

/*
 * After that, in a child that registers nobody else: move PMI_FD to the number of the
 * registration socket, which has kept it free, so that it is the same in every
 * rank of the node. Returns the number that it has now.
 */
int agent_rank_takes_place(int registration_fd, int pmi_fd);

/* A message that another agent's tell_node carried here. Any thread. */
void agent_told(struct agent *a, const void *data, size_t len);

/*
 * Drain (finish what this node's ranks entered, flush, say goodbye), within
 * options.drain_ms; end and join the thread; free everything. 0, or -EBUSY: a
 * call of the host has not come back in time. It goes on in its thread, whose
 * code stays loaded; what `step` and `host` point to must stay, too.
 */
int agent_stop(struct agent *a);

#endif
