/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the head of a DVM and the daemon of a node, and between the daemon and
 * its fork server, the zygote. A frame carries the messages of one turn of the loop, one
 * after another. Head and daemon prove themselves before (libio/handshake.h). The reader
 * checks all messages nevertheless.
 *
 *   node                      head
 *   REGISTER            ->
 *                       <-    PROFILE, before the first task that has it
 *                       <-    NODES, before the first task on several nodes, and before
 *                             the first one after others have joined
 *                       <-    LAUNCH for each task, or part of one, of the node
 *   STARTED             ->    with the next message, or soon
 *   BULK, OUTPUT        ->    forwarded output: within the part's window
 *                       <-    CREDIT: clients have read some of it
 *   FAILING             ->    a rank has failed: the part is being ended
 *   FAILED              ->    the task has failed, on a node where its ranks have ended well
 *                       <-    SIGNAL
 *                       <-    ASK: the state of a task, for a client
 *   TOLD                ->    the answer; two of them for a task with PMI
 *   NAMES               ->    a rank publishes or looks up names
 *                       <-    NAMES, the answer
 *   SPAWN               ->    a rank spawns another task
 *   READY               ->    the first rank of that task is ready, or never will be
 *                       <-    SPAWNED: the first rank is ready, or why not
 *   ENDED               ->    all ranks of the part have ended; once for each LAUNCH
 *                       <-    DONE: the end is in the journal; only for a LAUNCH whose
 *                             end is kept until then
 *   LEASE               ->    the time, at intervals (lease.h)
 *                       <-    LEASE, the answer, with the same time
 *                       <-    LEAVE
 *                       <-    STOP: end what runs, and leave
 *   GONE                ->    the last message: no rank runs or will be started
 *
 * A head that goes on after another was lost connects to the nodes that wait for it. So
 * does a head that has given a node up, and then sends STOP:
 *
 *                       <-    CALL: the epoch of the head; a frame of its own
 *                       <-    ADOPT
 *   REGISTER            ->
 *   HELD                ->    for each part that runs, or whose end is kept
 *   FAILING, ENDED      ->    of these parts
 *
 * The head's messages for the server of PMI are in frames of their own: dvm_msg_for_pmi.
 *
 * The daemon never waits for the zygote, which stands still where a file system hangs. Parts
 * (node.h) have numbers, and so have their ranks on this node, from 0:
 *
 *   daemon              zygote
 *                       <-    RESOURCES: the resources of the node
 *   PROFILE             ->    before the first EXEC with it
 *   FORGET              ->    no EXEC with it follows
 *   EXEC                ->    start ranks; their descriptors come along
 *                       <-    PROCESSES of started ranks, and the error of the next one
 *   GIVE_UP             ->    no new try of that rank: the task ends with the other ranks
 *   KILL                ->    a signal to the running ranks
 *                       <-    EXITED: a rank has ended
 *   HEAD_LINK           ->    the link to another head comes along, for zygote.h
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dvm/core/ledger.h"
#include "dvm/core/limits.h"
#include "libutil/coder.h"

#define DVM_VERSION 9         /* of these messages, and of the clients' */
#define DVM_TEXT_MAX 1024     /* bytes of a reason, path or name */
#define DVM_TAIL_MAX 4096     /* bytes of output that come back with a result */
#define DVM_COMMAND_MAX ((size_t)2 << 20) /* bytes of arguments or environment */
#define DVM_INPUT_MAX ((size_t)1 << 20)   /* bytes of a task's standard input */
#define DVM_RUNS_MAX ((size_t)LEDGER_NODES_MAX * 12) /* bytes of the nodes of a task */
#define DVM_NEIGHBOURS_BYTES 1024          /* limit of the bytes of a node's neighbours */
#define DVM_NODES_MAX ((size_t)1 << 20)    /* bytes of names in a NODES */
#define DVM_TOLD_MAX ((size_t)4 << 20)     /* bytes of a report on a task */
#define DVM_SPAWN_MAX ((size_t)48 << 10)   /* bytes that a task hands to one it spawns */
#define DVM_NAMES_MAX ((size_t)2 << 20)    /* bytes of a request about names */
/* Limit of the bytes of a LAUNCH. */
#define DVM_LAUNCH_MAX \
	(2 * DVM_COMMAND_MAX + DVM_INPUT_MAX + DVM_RUNS_MAX + DVM_SPAWN_MAX)
#define DVM_LINE_MASK (((uint64_t)1 << 40) - 1) /* of a line's number; more bits are the client's */
#define DVM_WINDOW_MIN 4096  /* the smallest window: unread bytes of a part's output */
#define DVM_OUTPUT_EXTRA 128 /* bytes that each piece of output counts beyond its own */

enum dvm_msg_type {
	DVM_REGISTER = 1,
	DVM_PROFILE,
	DVM_FORGET,  /* a profile */
	DVM_LAUNCH,
	DVM_SIGNAL,
	DVM_LEAVE,
	DVM_STARTED,
	DVM_FAILING,
	DVM_OUTPUT,
	DVM_ENDED,
	DVM_EXEC,
	DVM_GIVE_UP,
	DVM_KILL,
	DVM_PROCESSES,
	DVM_FAILED,
	DVM_ASK,
	DVM_TOLD,
	DVM_EXITED,
	DVM_NAMES,
	DVM_SPAWN,
	DVM_SPAWNED,
	DVM_READY,
	DVM_ADOPT,
	DVM_HELD,
	DVM_DONE,
	DVM_STOP,
	DVM_LEASE,
	DVM_GONE,
	DVM_CALL,
	DVM_BULK,
	DVM_CREDIT,
	DVM_RESOURCES,
	DVM_HEAD_LINK,
	DVM_NODES,
	DVM_MSG_TYPES,
};

/* Bytes that the struct does not own: not terminated. */
struct dvm_bytes {
	const void *data;
	size_t len;
};

/* Description of a node. */
struct dvm_register {
	uint32_t version;
	struct ledger_resources has;
	uint16_t port; /* port for other daemons of the DVM; 0: none */
	struct dvm_bytes name;
	struct dvm_bytes build;
};

/* The address at which a daemon listens. */
struct dvm_address {
	uint8_t ip[16]; /* IPv4 in its mapped form */
	uint16_t port;
};

/* Names of nodes of the DVM, for tasks on several nodes. */
struct dvm_nodes {
	uint32_t first; /* position of the first one in the DVM: 0, or the next unknown one */
	struct dvm_bytes names; /* struct dvm_name_run, each packed: dvm_places.h */
};

/* The working directory, environment and limits of tasks: sent once for many tasks. */
struct dvm_profile_msg {
	uint32_t number;
	struct dvm_bytes cwd;
	struct dvm_bytes env; /* texts, each with its NUL */
	struct dvm_limits limits;
	struct dvm_bytes outputs; /* directory for complete output, a text; or empty */
	struct dvm_bytes input; /* standard input of rank 0 of tasks that have none; or empty */
};

enum dvm_output {
	DVM_OUTPUT_TAIL,    /* the last bytes are part of the result */
	DVM_OUTPUT_FILE,    /* to a file on the node; the tail of stderr is part of the result */
	DVM_OUTPUT_FORWARD, /* sent as the ranks write */
	DVM_OUTPUT_NONE,
	DVM_OUTPUTS,
};

struct dvm_launch {
	uint64_t task;
	uint32_t instance;  /* number of the try, from 0 */
	uint32_t profile;
	uint32_t ranks;     /* of the task */
	uint32_t nodes;     /* of the task */
	uint32_t node;      /* index among these nodes, from 0 */
	uint32_t first_rank, ranks_here;
	struct dvm_cores cores;
	uint64_t gpus;
	uint32_t limit_s;   /* limit of the running time; 0: none */
	uint32_t grace_ms;  /* between SIGTERM and SIGKILL */
	uint32_t universe;  /* ranks that the DVM can hold of the task and of those that it
	                       spawns */
	bool pmi;           /* also for a task of one rank */
	bool keep;          /* keep its end until DONE */
	bool append;        /* append to files; else empty them first */
	bool preloaded;     /* a script, which a fork of the node's interpreter runs */
	enum dvm_output output;
	uint32_t window;    /* of DVM_OUTPUT_FORWARD: see DVM_WINDOW_MIN */
	struct dvm_bytes argv; /* texts, each with its NUL */
	struct dvm_bytes path; /* of output, see dvm_output; may be empty */
	struct dvm_bytes error; /* the file of stderr, a text; or empty */
	struct dvm_bytes cwd;   /* in place of the profile's, a text; or empty */
	struct dvm_bytes runs;    /* the nodes of a task on several: struct dvm_run, each packed
	                             (dvm_places.h); or empty */
	struct dvm_bytes neighbours; /* of this node: struct dvm_neighbour, each packed */
	struct dvm_bytes spawned; /* by its spawner: dvm_spawn.about; or empty */
	struct dvm_bytes input;   /* standard input of rank 0; empty: the profile's */
	uint64_t line;            /* names the files of its complete output; 0: its number does */
};

struct dvm_signal {
	uint64_t task;
	uint32_t instance;
	uint32_t number; /* 0: end the part, SIGTERM first */
};

struct dvm_started {
	uint64_t task;
	uint32_t instance;
};

/* A part that another head has launched: as in dvm_launch. */
struct dvm_held {
	uint64_t task;
	uint32_t instance;
	uint32_t nodes, node;
	uint32_t first_rank, ranks_here;
	struct dvm_cores cores;
	uint64_t gpus;
	uint64_t started_ns;
};

struct dvm_call {
	uint64_t epoch; /* of the head, in the journal's directory (owner.h); 0: no journal */
};

struct dvm_stop {
	bool now; /* without grace */
};

struct dvm_lease {
	uint64_t sent_ms; /* by the clock of the node */
};

struct dvm_output_msg {
	uint64_t task;
	uint32_t rank;
	uint32_t fd; /* 1, 2 */
	struct dvm_bytes data;
};

/* Clients have read these bytes of a part's output; each piece counts dvm_output_cost(). */
struct dvm_credit {
	uint64_t task;
	uint32_t instance;
	uint32_t bytes;
};

/* Descriptors, processes or memory that a node lacked for the start of a part. */
enum dvm_lack {
	DVM_LACK_NONE,
	DVM_LACK_WAITED, /* the part has waited long enough: the task may run elsewhere */
	DVM_LACK_IDLE,   /* nothing else runs on the node, which can start nothing */
	DVM_LACK_CHILD,  /* a process of the part lacked it before it could execute */
	DVM_LACKS,
};

/* The ends of a task's ranks on one node. */
struct dvm_ended {
	uint64_t task;
	uint32_t instance;
	int32_t status;    /* wait status of the first rank that failed, else 0 */
	uint32_t rank;     /* number of that rank */
	bool not_started;  /* not startable: status is 127 or 126, why has the reason */
	bool too_long;     /* limit_s was reached */
	bool told;         /* the head has ended it: its status is not the cause */
	enum dvm_lack lack; /* the node lacks something: the task has not failed */
	bool any_started;  /* a rank was started, though the part lacked something */
	uint64_t started_ns, ended_ns; /* CLOCK_REALTIME */
	uint64_t user_us, system_us;   /* sums over all ranks */
	uint64_t peak_kib;             /* of the largest rank */
	struct dvm_bytes why;
	struct dvm_bytes out, err;     /* tails */
	struct dvm_bytes files;        /* of complete output: names, each with its NUL */
	struct dvm_bytes unkept;       /* why these are not whole, or empty */
};

/* The failure of a task, wherever it runs. */
struct dvm_failed {
	uint64_t task;
	uint32_t instance;
	int32_t status;
	uint32_t rank;
	bool asked;
	struct dvm_bytes why;
};

/*
 * A message about names of a task, in the form of the process that serves its PMI:
 * libpmi/control.h.
 */
struct dvm_names {
	uint64_t task;
	uint32_t instance;
	struct dvm_bytes data;
};

/* A task wants another one. */
struct dvm_spawn {
	uint64_t task;
	uint32_t instance;
	uint32_t token; /* repeated in the answer */
	uint32_t ranks;
	struct dvm_bytes argv;
	struct dvm_bytes about; /* for the process that serves the new task's PMI; not empty */
};

struct dvm_ready {
	uint64_t task;
	uint32_t instance;
	struct dvm_bytes why; /* why the rank will never be ready; empty: it is */
};

struct dvm_spawned {
	uint64_t task;  /* the task that asked */
	uint32_t instance;
	uint32_t token;
	uint64_t spawned; /* the new task, */
	uint32_t spawned_instance;
	struct dvm_bytes why; /* ... or the reason why there is none */
};

/* Start ranks of a part, from its rank `first` on this node on. */
struct dvm_exec {
	uint32_t part, first;
	uint32_t profile; /* number in PROFILE to the zygote */
	bool pmi;         /* pipes for stdout and stderr come along; with PMI registration too */
	struct dvm_bytes launch; /* the message LAUNCH */
};

struct dvm_kill {
	uint32_t part, number;
};

struct dvm_processes {
	uint32_t part;
	int32_t error; /* 0: all have been started; else the negative errno of the next rank */
	struct dvm_bytes numbers; /* uint64_t each */
};

struct dvm_exited {
	uint32_t part, slot;
	int32_t status; /* as of wait */
	bool lacks;     /* not started, because the node lacks something; else see why */
	uint64_t user_us, system_us, peak_kib;
	struct dvm_bytes why; /* why it was not started; empty: it was */
};

/* Ask for the state of a task. The answer goes to a client. */
struct dvm_ask {
	uint64_t task;
	uint32_t instance;
	uint32_t node;   /* index among the nodes of the task */
	uint32_t client;
};

enum dvm_told_what {
	DVM_TOLD_RANKS, /* struct dvm_rank of the node's ranks, packed; empty: all have ended */
	DVM_TOLD_PMI,   /* libpmi/status.h; empty: no rank has used PMI */
	DVM_TOLDS,
};

struct dvm_told {
	struct dvm_ask about;
	enum dvm_told_what what;
	bool pmi;       /* in DVM_TOLD_RANKS: DVM_TOLD_PMI follows */
	uint32_t file_stall_ms; /* node_ops.output_stall_ms; 0: no file holds the part up */
	struct dvm_bytes data;
};

struct dvm_rank {
	uint32_t rank;
	uint64_t process;
	char state;      /* as in /proc/PID/stat; '-': ended; '+': not started */
	uint64_t cpu_us; /* used so far */
};

struct dvm_msg {
	enum dvm_msg_type type;
	union {
		struct dvm_register reg;
		struct dvm_profile_msg profile; /* FORGET has the number only */
		struct dvm_nodes nodes;
		struct dvm_launch launch;
		struct dvm_signal signal;
		struct dvm_started started; /* also of FAILING and DONE */
		struct dvm_held held;
		struct dvm_call call;
		struct dvm_stop stop;
		struct dvm_lease lease;
		struct dvm_output_msg output;
		struct dvm_credit credit;
		struct dvm_ended ended;
		struct dvm_failed failed;
		struct dvm_ask ask;
		struct dvm_told told;
		struct dvm_names names;
		struct dvm_spawn spawn;
		struct dvm_spawned spawned;
		struct dvm_ready ready;
		struct ledger_resources resources;
		struct dvm_exec exec;
		uint32_t give_up; /* number of a part */
		struct dvm_kill kill;
		struct dvm_processes processes;
		struct dvm_exited exited;
	};
};

/*
 * Append a message. 0, -EMSGSIZE, -ENOBUFS or -ENOMEM; after an error nothing is appended.
 */
int dvm_msg_pack(struct buf *b, const struct dvm_msg *m);
/* Read the next message of a frame; *m points into the frame. 0 or -EPROTO. */
int dvm_msg_unpack(struct cursor *c, struct dvm_msg *m);

/*
 * True: the head's frame is for the part of the daemon that serves PMI; it is one message
 * then.
 */
bool dvm_msg_for_pmi(const void *data, size_t len);
/* True: the frame is the head's answer to LEASE, which is a frame of its own, too. */
bool dvm_msg_is_lease(const void *data, size_t len);

/* The cost of a piece of output in a window: small pieces need memory, too. */
static inline uint64_t dvm_output_cost(size_t len)
{
	return (uint64_t)len + DVM_OUTPUT_EXTRA;
}

/* The exit code that a shell gives for a wait status. */
static inline int dvm_exit_code(int32_t status)
{
	return status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
}

#define DVM_JOBID_MAX 320

/* The name of a task in PMI: each try is a new job. */
void dvm_jobid(char out[DVM_JOBID_MAX], const char *dvm, uint64_t task,
	       uint32_t instance);

/* Encode or decode bytes with their length; decoding accepts at most `max`. */
void dvm_code_bytes(struct coder *c, struct dvm_bytes *v, size_t max);

/*
 * Copy a profile. *out points into the bytes that are returned; free() them. NULL: no
 * memory.
 */
char *dvm_profile_copy(struct dvm_profile_msg *out, const struct dvm_profile_msg *m);

int dvm_rank_pack(struct buf *b, const struct dvm_rank *r);
/* Read the next rank. 0 or -EPROTO. */
int dvm_rank_unpack(struct cursor *c, struct dvm_rank *r);

/* True: a list of texts, each with its NUL, at least `min` of them. */
bool dvm_texts_ok(const struct dvm_bytes *b, size_t min);
/* The next text of such a list, or NULL; start with NULL. */
const char *dvm_texts_next(const struct dvm_bytes *b, const char *text);
size_t dvm_texts_count(const struct dvm_bytes *b);
