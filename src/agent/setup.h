/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that an agent is told before it begins, and its form as bytes: who starts an
 * agent packs it, and the agent reads it from a descriptor. Both are of one
 * machine. Another version of the form is refused with an error that names it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "libio/secret.h"
#include "libpmi/step.h"
#include "libutil/buf.h"

#define SETUP_VERSION 10
#define SETUP_BYTES_MAX ((size_t)1 << 30)

/* Ports that the first node keeps for programs. */
enum torch_port { TORCH_PORT_STORE, TORCH_PORT_JAX, TORCH_PORTS };

struct agent_options {
	struct secret secret;   /* of the step */
	/* The address at which to listen, its port ignored; AF_UNSPEC: all addresses. */
	struct sockaddr_storage bind;
	/*
	 * `bind` is an address in a network of its own: neighbours do not find
	 * each other by their nodes' addresses, but tell each other theirs.
	 */
	bool addresses_told;
	uint16_t port_first;    /* of the range to listen in; 0: any port */
	uint16_t port_last;
	uint64_t port_seed;     /* of the step, random: see step_port */
	/* srun, port included; AF_UNSPEC: none. */
	struct sockaddr_storage launcher;
	uint64_t region_size;   /* bytes reserved; 0: no shared memory */
	uint64_t buffer_limit;  /* bytes of the step's data that are held: libutil/budget.h */
	uint32_t handshake_ms;  /* a connection must prove itself within */
	uint32_t connect_back_ms; /* a connect without answer, then it is asked to */
	uint32_t connect_ms;    /* give a neighbour up after */
	uint32_t absent_ms;     /* one that refuses this long may have ended: ask,
	                           and again after as long */
	uint32_t drain_ms;      /* bound of leaving */
	bool stays;             /* until the nodes below have left: see agent_leave */
	uint32_t stall_ms;      /* tell srun of a collective that waits longer,
	                           and at each doubling; 0: never */
	uint32_t collective_ms; /* limit of a collective; 0: none */
	bool end_on_failure;    /* the step, when a collective fails */
	bool no_kill;           /* a node that is lost does not end the step */
	/* No srun stays with the step: the first node serves what srun would, but spawns. */
	bool no_srun;
	bool tell_unspoken;     /* when the node's ranks end without PMI: unspoken.h */
	/*
	 * The step's program, if nobody has been told that ranks may have lacked PMI_FD:
	 * an enum cause_wrapper; elsewhere than on the first node, WRAPPER_NONE.
	 */
	uint32_t wrapper;
	/*
	 * The process that closed PMI_FD of the rank in a slot before the agent was
	 * started, and lived on; NULL: none is known.
	 */
	const char *closed_by;
	uint32_t closed_slot;
	bool trace;             /* record time stamps and send them to srun */
	/* With trace, in ns of CLOCK_MONOTONIC: when the host's process was made
	   (0: unknown), when it began with the step, when it listened, and when
	   somebody wanted the agent. */
	int64_t launch_ns, prefork_ns, ready_ns, wanted_ns;
	bool exits_known;       /* the host learns how ranks' processes end */
	bool topology;          /* the host makes the node's topology a file */
	const char *settings;   /* shared by all nodes: peers/settings.h; NULL: not compared */
	/* SlurmdSpoolDir of slurm.conf, where sockets for connect-back messages are, and
	   how many bytes it may have; NULL: unknown. */
	const char *spool_dir;
	uint32_t spool_max;
	const char *no_pmix;    /* why nobody serves PMIx clients here, for people;
	                           NULL: somebody does, or it is not known */
	bool debug;             /* somebody reads debug lines */
	uint32_t dead_peer_ms;  /* TCP_USER_TIMEOUT and keep-alive */
	/* The step has a TCPStore. Once PyTorch uses it, a rank that fails ends the step. */
	bool torch;
	/* The first node tells the others these ports of PyTorch and JAX; not used elsewhere. */
	uint16_t torch_ports[TORCH_PORTS];
	bool torch_ports_wanted; /* this node's ranks wait for them */
	bool knows_nodes;       /* setup.known has all nodes, whose connections count */
	uint32_t connect_back_uid; /* the user whose connect-back messages count, besides root */
	uint16_t protocol;      /* to announce, in tests; 0: the agent's own */
};

/* Defaults for everything but secret and launcher. */
void agent_options_init(struct agent_options *o);

#define STEP_PORT_TRIES 8 /* ports of a node at which neighbours look */

/*
 * The port that a node at this position takes at its `try`th try. Nodes of one step on
 * one host have different ones, and other users cannot know them.
 */
uint16_t step_port(const struct agent_options *o, const struct layout *layout,
		   uint32_t position, uint32_t try);

/*
 * The first node wakes up after this time. After the same time again it connects to
 * srun, so that srun can ask.
 */
#define STATUS_LINE_MS 1000

/* Descriptors that an agent is given; -1: none. */
struct agent_fds {
	int registration; /* ranks come over it: libio/registration.h */
	int listener;     /* of the links; -1: there are no neighbours */
	/*
	 * Listening unix socket for connect-back messages in the form slurmd
	 * delivers them (u32 uid, u32 length, network order, data).
	 */
	int connect_back;
	int region;       /* the empty object of the results region */
	/*
	 * The process that serves the node's PMIx clients uses libpmi/pmix_msg.h over
	 * it. The other end may be held for long, or forever, before somebody reads
	 * there.
	 */
	int pmix;
	int sync;        /* listening unix socket of clients of the store */
	int sync_client; /* the first of these, which has been accepted */
	int torch;       /* listening TCP socket of PyTorch's TCPStore, on the first node */
};

/* A node's address that needs no look-up; its port is ignored. */
struct known_address {
	uint32_t node_id;
	struct sockaddr_storage addr;
};

struct setup {
	struct pmi_step step;   /* without mapping, netinfo, budget and hash_seed */
	struct agent_options options;
	uint16_t port;          /* where the agent listens; 0: nowhere */
	struct known_address *known;
	uint32_t nknown;
};

/* Append it. 0, -ENOBUFS or -ENOMEM. The bytes hold the secret. */
int setup_pack(struct buf *b, const struct setup *s);

/*
 * Read one from bytes that stay where they are as long as it is used; the
 * secret in them is overwritten. 0; -EPROTONOSUPPORT: of another version;
 * -EPROTO, -ENOMEM. Free it with setup_free on success.
 */
int setup_unpack(struct setup *out, void *data, size_t len);
void setup_free(struct setup *s);
