/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI server engine of one node: sessions of the local ranks in PMI-1,
 * PMI-2 and the pmi2x extension, the KVS, node attributes, and the collectives
 * (it owns the node's struct coll). Bytes in, bytes out: the host feeds what
 * it reads from ranks, neighbours and srun, and carries out struct
 * pmi_host_ops. Calls no system function; one thread at a time; host operations
 * must not call back into the server.
 *
 * Every request gets a response, also unknown and malformed ones.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/coll.h"
#include "libcoll/layout.h"
#include "libpmi/cause.h"
#include "libpmi/rc.h"
#include "libpmi/step.h"
#include "libshm/region.h"
#include "libshm/slots.h"
#include "libutil/log.h"
#include "libutil/passed_fds.h"
#include "libutil/payload.h"

#define PMI_PENDING_MAX ((size_t)64 << 20) /* bytes a rank may put before a fence */
#define PMI_INPUT_MAX ((size_t)2 << 20)    /* bytes of unparsed input of a rank */
#define PMI_NODE_HEAD_MAX 1024 /* bytes of a message's head between nodes */
#define PMI_NODE_ATTRS_MAX 65536           /* node attributes of a node */

/* Events of a trace of start-up; see pmi_host_ops.event. */
enum pmi_event {
	PMI_EVENT_REQUEST,  /* slot: its rank asks for something, before what it is */
	PMI_EVENT_TOPOLOGY, /* the same: for PMI_hwloc_xmlfile */
	PMI_EVENT_ANSWER,   /* slot: its rank is answered */
	PMI_EVENT_INIT,     /* slot: its rank has sent init */
	PMI_EVENT_PUT,      /* slot: its rank has put something */
	PMI_EVENT_ENTER,    /* slot, kind, seq */
	PMI_EVENT_UP,       /* kind, seq: the node's contribution is complete */
	PMI_EVENT_DOWN,     /* kind, seq: the result is there */
	PMI_EVENT_DONE,     /* kind, seq: every rank of the node is answered */
	/* slot; seq: who meets, a number that is the same on all nodes. Its n-th
	   barrier of that number is the n-th of the others. */
	PMI_EVENT_GROUP_ENTER,
	PMI_EVENT_GROUP_DONE,
	PMI_EVENT_FINALIZE, /* slot */
};

struct pmi_host_ops {
	/*
	 * Queue bytes for the rank in `slot`. `fds` (NULL: none) travel with the
	 * first byte and stay the server's.
	 */
	void (*client_send)(void *arg, uint32_t slot, const void *data,
			    size_t len, const struct passed_fds *fds);
	/* Close the rank's connection after what is queued has been sent. */
	void (*client_close)(void *arg, uint32_t slot);
	/*
	 * Queue a message for the neighbour at `position`; kept until its link
	 * is up. The head (1 to PMI_NODE_HEAD_MAX bytes), which is `msg` packed, is
	 * copied, the body (NULL: empty) is referenced.
	 */
	void (*node_send)(void *arg, uint32_t position,
			  const struct coll_msg *msg, const void *head,
			  size_t head_len, const struct payload_vec *body);
	/*
	 * There was no memory for a message, so the neighbour misses it: end the link, and
	 * call pmi_server_link_lost later.
	 */
	void (*node_break)(void *arg, uint32_t position);
	/* The first rank has started PMI: make the links. Called once. */
	void (*links_wanted)(void *arg);
	/* Pass a control message (control.h) towards srun. */
	void (*control_send)(void *arg, const void *data, size_t len);
	/*
	 * A collective has failed, the first of this node: end the step, with
	 * this exit code of srun. Ranks are not answered what fails, so that they
	 * do not each print why: see pmi_server_answer_failed. NULL: they are,
	 * and srun is told why.
	 */
	void (*end_step)(void *arg, const char *why, int code);
	/* With slots: wake the ranks that wait on slots_futex. */
	void (*slots_wake)(void *arg);
	/* With slots: call pmi_server_slots_input again, later. */
	void (*slots_again)(void *arg);
	/*
	 * Call pmi_server_tidy when nothing has happened for a while, or, `soon`,
	 * once other events have had their turn: a rank has put something, so a
	 * fence is near. NULL: the server does that work at once, after the
	 * ranks have been woken.
	 */
	void (*tidy_later)(void *arg, bool soon);
	/*
	 * For traces: something has happened to a rank, or else a collective
	 * (the other arguments are 0). NULL: nobody wants to know.
	 */
	void (*event)(void *arg, enum pmi_event event, uint32_t slot,
		      enum coll_kind kind, uint32_t seq);
	/*
	 * A rank asks for the node's topology as a file: call pmi_server_topology,
	 * later. Called once. NULL: there is none, and nobody waits.
	 */
	void (*topology_wanted)(void *arg);
	/*
	 * After pmi_server_use_pmix: queue a message for who serves the PMIx
	 * clients. The head is copied, the data (NULL: none) that follow it are
	 * referenced.
	 */
	void (*pmix_send)(void *arg, const void *head, size_t len,
			  struct payload *data);
	/* A clock, in ms. NULL: nobody waits for what is fetched with a limit. */
	uint64_t (*now)(void *arg);
	/* With now: call pmi_server_fetch_due in `ms`, instead of an earlier call. */
	void (*fetch_timer)(void *arg, uint64_t ms);
	/*
	 * True: this process of the node lives; its name for users, or "", is in `name`.
	 * Without this operation every process lives, and none has a name.
	 */
	bool (*process)(void *arg, uint32_t pid, char name[PMI_PROCESS_NAME_MAX]);
	/*
	 * True: the process was started with PMI_RANK in its environment, which is in
	 * `number`. NULL: nobody can say.
	 */
	bool (*pmi_rank)(void *arg, uint32_t pid, uint32_t *number);
	/*
	 * Find the process that has the socket of a PMIx client (PMIX_SOCKET_BYTES), which
	 * may be `near` (0: nobody) or an ancestor of it, otherwise, with `all`, any process
	 * of the step's user; and call pmi_server_holder_found once, later. One question at
	 * a time. NULL: nobody can say.
	 */
	void (*find_holder)(void *arg, const unsigned char *socket, uint32_t near,
			    bool all);
	/* With event: the stamps of a rank's own library, in its finalize. */
	void (*rank_trace)(void *arg, uint32_t slot, const char *text);
};

struct pmi_server;

/*
 * `region` may be NULL (no shared memory: results are kept in the heap and the
 * extension offers no region). `step`, `region` and `log` outlive the server.
 * 0, -EINVAL or -ENOMEM.
 */
int pmi_server_create(struct pmi_server **out, const struct pmi_step *step,
		      struct region_writer *region,
		      const struct pmi_host_ops *ops, void *arg,
		      const struct log_hook *log);
void pmi_server_destroy(struct pmi_server *s);

/*
 * Let ranks enter collectives through slots (libshm/slots.h), which outlive the
 * server; it needs a region, too. Writing to the eventfd `wake_fd`, which ranks
 * are given, must lead to pmi_server_slots_input. Before any rank is there.
 */
void pmi_server_use_slots(struct pmi_server *s, struct slots *slots,
			  int wake_fd);

/* The place of this node in the tree: who its neighbours are. */
const struct tree_place *pmi_server_place(const struct pmi_server *s);

/* ---- ranks ---- */

/*
 * The rank in `slot` is connected. Ignored for a slot that is connected already;
 * for one that is gone the connection is closed (a rank that is gone for a
 * collective stays gone).
 */
void pmi_server_client_open(struct pmi_server *s, uint32_t slot);
/*
 * The next bytes are of this process (its number is the host's to know, 0: unknown),
 * until this is called again. The rank's session of PMI is of one process: while that
 * lives, another one that sends init is refused.
 */
void pmi_server_client_writes(struct pmi_server *s, uint32_t slot, uint32_t pid);
/*
 * A process was refused, and may wait for an answer: a second later call the other one,
 * which answers it if it lives. Meanwhile a message of the process that uses PMI shows
 * that both wait for answers.
 */
bool pmi_server_client_refused(const struct pmi_server *s, uint32_t slot);
void pmi_server_client_answer_refused(struct pmi_server *s, uint32_t slot);
/* Bytes from it. Never fails: what is wrong is answered to the rank. */
void pmi_server_client_input(struct pmi_server *s, uint32_t slot,
			     const void *data, size_t len);
/* A part of its next message has come: the process does not wait for an answer. */
bool pmi_server_client_is_midway(const struct pmi_server *s, uint32_t slot);
/*
 * The rank's connection has ended. One of the next two functions follows soon, when the
 * state of the process is known. From now on requests in the rank's slot do not count.
 */
void pmi_server_client_hung_up(struct pmi_server *s, uint32_t slot);
/*
 * The rank's connection has ended and its process lives: the rank is gone for collectives
 * of PMI, and may use PMIx.
 */
void pmi_server_client_eof(struct pmi_server *s, uint32_t slot);
/*
 * The process has ended, and with it the rank, whoever may still hold its PMI_FD. The
 * host has fed all its input before. Calls client_close unless client_eof came first or
 * the connection was closed. Both are idempotent; after this one there is nothing left
 * for the other. `end` may be NULL.
 */
void pmi_server_client_exit(struct pmi_server *s, uint32_t slot,
			    const struct pmi_exit *end);
/*
 * A program that is not the rank's process (0: unknown) has finalized PMI there: the
 * process, as a shell, may start others.
 */
bool pmi_server_client_is_outlived(const struct pmi_server *s, uint32_t slot,
				   uint32_t process);
/* False: it has finalized, and nothing has failed for it before. */
bool pmi_server_client_end_matters(const struct pmi_server *s, uint32_t slot);

/* A rank has entered something through its slot, or may have. */
void pmi_server_slots_input(struct pmi_server *s);

/*
 * Do a bounded piece of work that makes look-ups and fences faster and can wait. True: call
 * again. False: all is done, there is no memory for it, ranks leave, or a rank waits for a
 * collective, at whose end there is work again.
 */
bool pmi_server_tidy(struct pmi_server *s);

/* ---- PMIx ---- */

/*
 * pmixd may connect. Its clients are processes of this user and group. People hear of a
 * wait after stall_ms (0: never).
 */
void pmi_server_use_pmix(struct pmi_server *s, uint32_t uid, uint32_t gid,
			 uint32_t stall_ms);
/*
 * Nobody ever will, for `why`, which outlives the server. Unless ranks of the node speak
 * PMI, PMIx fences fail with that reason on every node.
 */
void pmi_server_no_pmix(struct pmi_server *s, const char *why);
/*
 * A message of it (pmix_msg.h), whole, with its length; what it enters refers to it.
 * 0; -EPROTO or -ENOMEM: it is to be shut out, and pmi_server_pmix_lost is due.
 */
int pmi_server_pmix_input(struct pmi_server *s, struct payload *message);
/*
 * pmixd has gone: on every node the node's PMIx collectives that have not ended, and later
 * ones, fail for `why`. No effect if it never came, or the node's ranks have ended.
 */
void pmi_server_pmix_lost(struct pmi_server *s, const char *why);

/*
 * The answer to pmi_host_ops.find_holder: the number of the process; -ESRCH: it is not
 * `near`; another negative errno: it is not known.
 */
void pmi_server_holder_found(struct pmi_server *s, int found);

/* ---- neighbours ---- */

/*
 * A message from the neighbour at `from`, decoded by coll_msg_read; `body` may be NULL. 0, or -EPROTO:
 * break the link.
 */
int pmi_server_node_input(struct pmi_server *s, uint32_t from,
			  const struct coll_msg *msg, struct payload *body);
/*
 * `len` bytes of body follow this head: one reference to a payload to read them
 * into and to give to pmi_server_node_input with it, before anything else of
 * that neighbour; or NULL: anywhere.
 */
struct payload *pmi_server_node_room(struct pmi_server *s, uint32_t from,
				     const struct coll_msg *msg, size_t len);
void pmi_server_link_up(struct pmi_server *s, uint32_t position);
/* Lost for good, or gone after its goodbye (in_order). `why` is for people. */
void pmi_server_link_lost(struct pmi_server *s, uint32_t position, bool in_order,
			  const char *why);
/* ---- srun ---- */

/* A reply (control.h) for this node. 0, -EPROTO, or -ENOMEM: a rank waits for it. */
int pmi_server_control_input(struct pmi_server *s, const void *data, size_t len);
/* srun cannot be reached any more: requests that wait for it fail. */
void pmi_server_control_lost(struct pmi_server *s, const char *why);

/*
 * The step has not been ended after end_step: answer the ranks that wait, and at
 * once what fails from now on.
 */
void pmi_server_answer_failed(struct pmi_server *s);

/* ---- fetches ---- */

/* The time of pmi_host_ops.fetch_timer has come. */
void pmi_server_fetch_due(struct pmi_server *s);

/* ---- topology ---- */

/*
 * The path of the file, readable for every rank of the node and without a blank; NULL:
 * there is none, or not in time. Ranks that wait are answered; ranks that ask later are,
 * at once. May be called again: a path that comes late is for those.
 */
void pmi_server_topology(struct pmi_server *s, const char *path);

/* ---- status ---- */

/* A rank has started PMI, or somebody serves PMIx. */
bool pmi_server_used(const struct pmi_server *s);
/* Collectives that ranks of this node have entered and that have not ended. */
size_t pmi_server_pending(const struct pmi_server *s);
/* True: such a request waits, or a rank waits for a node attribute. */
bool pmi_server_expires(const struct pmi_server *s);
/*
 * As above, or a rank that waits for srun's answer, or may wait in PMIx for one that
 * has not started it: these waits are told of, and no limit ends them.
 */
bool pmi_server_waits(const struct pmi_server *s);
/* How many of these waits have ended here: grows whenever one does. */
uint64_t pmi_server_ended(const struct pmi_server *s);
/*
 * Sets all of libpmi/status.h but age_ms, for all ranks; `stopped` says whether the
 * process of a slot is. 0 or -ENOMEM; free out->runs.
 */
struct node_status;
int pmi_server_status(struct pmi_server *s,
		      bool (*stopped)(void *arg, uint32_t slot), void *arg,
		      struct node_status *out);
#define PMI_WAIT_TEXT_MAX 1024 /* bytes, NUL included */
/* In a text about clients that libpmix lets wait. Another node may report the operation. */
#define PMI_WAIT_INSIDE ", clients may wait for "
/*
 * The waits that are no part of the status: a line about an operation of some ranks that
 * has waited for `seconds`, and for whom of this node or below, or about a node attribute,
 * or a rank that clients of PMIx miss. Empty when there is none.
 */
void pmi_server_tell_wait(struct pmi_server *s, unsigned seconds,
			  char text[PMI_WAIT_TEXT_MAX]);
/* A line about an operation that waits for ranks elsewhere, which other nodes know better. */
void pmi_server_tell_own_wait(struct pmi_server *s, unsigned seconds,
			      char text[PMI_WAIT_TEXT_MAX]);
/*
 * Give up waiting: collective `seq` and all later ones of its kind fail on
 * every node, unless it has ended here.
 */
void pmi_server_expire(struct pmi_server *s, enum coll_kind kind, uint32_t seq,
		       const char *why);
/* Gives up all that has not ended here, of every kind. */
void pmi_server_expire_all(struct pmi_server *s, const char *why);
