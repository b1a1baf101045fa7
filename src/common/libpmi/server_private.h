/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the server engine share. The contract is server.h.
 *
 *   server.c       the object and the host's entry points
 *   session.c      a rank's connection: framing, dispatch, its end
 *   session1.c     the commands of PMI-1, one table
 *   session2.c     the commands of PMI-2, one table
 *   session_ext.c  handlers of the commands that the extension adds
 *   server_slots.c what ranks enter through shared memory
 *   server_state.c what people and tools are told
 *   answer.c       responses in the form of either protocol
 *   server_coll.c  between sessions and libcoll
 *   kvs.c          results of collectives: in the region or in the heap
 *   attrs.c        node and job attributes
 *   requests.c     what srun answers: names, spawn; aborts and reports
 */
#ifndef PMI2X_SERVER_PRIVATE_H
#define PMI2X_SERVER_PRIVATE_H

#include "libpmi/control.h"
#include "libpmi/message.h"
#include "libpmi/server.h"
#include "libpmi/spawn.h"
#include "libshm/image.h"

#define THRID_MAX 64            /* bytes of a thread id, NUL included */
#define ANSWER_TEXT_MAX 640     /* bytes of an error text, NUL included */
#define WHY_MAX 256             /* bytes of a reason, NUL included */
#define SESSION_WAITS_MAX 1024  /* unanswered requests of a rank to srun and
                                   for node attributes */
#define RING_VALUE_MAX 65536    /* bytes a rank shows to a neighbour */

/* A job attribute that PMI-1 asks for as a key. */
#define MAPPING_KEY "PMI_process_mapping"

struct server_attr;
struct attr_wait;
struct srun_request;
struct gather;

/*
 *   ABSENT     -- open ----------> FRESH
 *   FRESH      -- init (PMI-1) --> ACTIVE
 *   FRESH      -- init (PMI-2) --> HANDSHAKE -- fullinit --> ACTIVE
 *   ACTIVE     -- finalize ------> FINALIZED
 *   FINALIZED  -- init ----------> as from FRESH: a second program
 *   any        -- protocol error > CLOSING, until the host call returns
 *   any        -- eof, exit -----> GONE
 */
enum session_state {
	SESSION_ABSENT,
	SESSION_FRESH,
	SESSION_HANDSHAKE,
	SESSION_ACTIVE,
	SESSION_FINALIZED,
	SESSION_CLOSING,
	SESSION_GONE,
};

#define IN(state) (1u << (state))
#define IN_LIVE (IN(SESSION_FRESH) | IN(SESSION_HANDSHAKE) | \
		 IN(SESSION_ACTIVE) | IN(SESSION_FINALIZED))

struct session;
struct request;

/* One row of a protocol's table. */
struct command {
	const char *name;
	const char *response;
	unsigned states;     /* IN(...) of the states that allow it */
	void (*handle)(struct session *ss, const struct request *rq,
		       const struct pmi_message *m);
	const char *failure; /* name of an error response; NULL: response */
	bool extension;      /* only after the extension was agreed on */
};

/* A row: what every command has, then what few have, by name. */
#define COMMAND(name_, response_, states_, ...) \
	{.name = name_, .response = response_, .states = states_, \
	 .handle = __VA_ARGS__}

/* What an answer, also a later one, needs to know of its request. */
struct request {
	const struct command *command;
	enum pmi_protocol protocol;
	char thrid[THRID_MAX]; /* "" when there was none */
	uint32_t ticket; /* over 0: came through the slot, answered there */
	uint32_t cell;   /* of the slot */
};

/* A collective that a rank has entered. */
struct entered {
	struct entered *prev, *next;
	enum coll_kind kind;
	uint32_t seq;
	size_t bytes;  /* contributed, counted in session.in_flight */
	size_t stride; /* of a gather */
	bool failed;   /* its answer is held back */
	struct request rq;
};

/* A gather whose space the rank has not given back. */
struct hold {
	struct hold *prev, *next;
	struct gather *gather;
};

struct session {
	struct pmi_server *server;
	uint32_t slot;
	uint32_t rank;
	enum session_state state;
	enum pmi_protocol protocol;
	int extension;      /* version agreed on, 0: none */
	bool slotted;       /* it was given the slots */
	bool told;          /* of a collective that has failed */
	uint32_t ticket;    /* slotted: of what it enters next (slots.h) */
	bool odd_logged;    /* an odd request of it has been logged */
	bool skip_spawns;   /* PMI-1: the spawn they belong to has failed */
	struct buf input;
	struct buf pending; /* KVS records put since the last fence */
	size_t in_flight;   /* bytes in collectives that have not ended */
	struct entered *entered;
	struct hold *holds;
	size_t waits;       /* see SESSION_WAITS_MAX */
	struct spawn_request *spawn; /* PMI-1: collected so far */
	char why[WHY_MAX];  /* why it went, when it knows better than "exited" */
};

/* Results of collectives (kvs.c). */
struct kvs {
	struct region_writer *region; /* NULL: in the heap */
	struct payload **images;      /* heap: fences, oldest first */
	size_t nimages;
	struct heap_gather *gathers;
	uint64_t next_offset;
	size_t heap_used;
};

struct pmi_server {
	const struct pmi_step *step;
	const struct pmi_host_ops *ops;
	void *arg;
	const struct log_hook *log;
	struct coll *coll;
	struct kvs kvs;
	struct slots *slots; /* NULL: ranks enter over their sockets */
	int wake_fd;         /* with slots */
	struct session *sessions;
	uint32_t nslots;
	struct server_attr *attrs;
	struct attr_wait *attr_waits;
	struct srun_request *requests;
	uint32_t next_request;
	struct pmi_message message; /* the one being handled */
	struct buf out;             /* the answer being written */
	struct buf head;            /* of the message being sent */
	const struct payload *built; /* by this node, while it is published */
	struct pmi_writer writer;
	bool used;        /* a rank has started PMI */
	bool leaving;     /* since then ranks have only finalized or ended */
	bool fence_near;  /* a rank has put something since the last fence */
	bool ready;       /* srun was told that rank 0 has started */
	bool srun_lost;
	bool slots_stale; /* look into the slots before the host call returns */
	bool slots_eager; /* a collective failed: who enters is told at once */
	bool slots_replied;
	bool settle;      /* sessions are CLOSING */
	bool reported;    /* srun was told that a collective has failed, */
	bool gave_up;     /* and that a rank has ended for it */
	char *held;       /* why: no rank gets this answer; NULL: they do */
};

/* ---- server.c ---- */

const char *server_node_name(const struct pmi_server *s);
/* The number of the command by which a rank was spawned, or -1. */
int server_appnum(const struct pmi_server *s, uint32_t rank);
/* For traces; costs a branch when there is none. */
static inline void server_event(struct pmi_server *s, enum pmi_event event,
				uint32_t slot, enum coll_kind kind,
				uint32_t seq)
{
	if (s->ops->event)
		s->ops->event(s->arg, event, slot, kind, seq);
}
/* A rank has sent init. */
void server_started(struct pmi_server *s, const struct session *ss);

/* ---- session.c ---- */

void session_open(struct session *ss);
void session_input(struct session *ss, const char *data, size_t len);
/* Start over for another program on the same connection. */
void session_restart(struct session *ss);
/* The program has finalized; another one may come. */
void session_finalize(struct session *ss, const struct request *rq,
		      const struct pmi_message *m);
/* Close a connection whose peer broke the rules; it is gone at the next settle. */
void session_fail(struct session *ss, const char *why);
/* The rank will not come back; `how` it went, for people. Idempotent. */
void session_end(struct session *ss, const char *how);
/* Drop what the session has asked for and what it holds. */
void session_drop(struct session *ss);
/* Neither gone nor about to be. */
bool session_is_live(const struct session *ss);
/* A key or value is in `m`, with a length in 1..max or 0..max; else answers. */
const struct pmi_field *session_key(struct session *ss,
				    const struct request *rq,
				    const struct pmi_message *m,
				    const char *name, size_t max);
const struct pmi_field *session_value(struct session *ss,
				      const struct request *rq,
				      const struct pmi_message *m,
				      const char *name, size_t max);
/* Handlers of PMI-1's put and barrier_in, and of PMI-2's kvs-put and kvs-fence. */
void session_handle_put(struct session *ss, const struct request *rq,
			const struct pmi_message *m);
void session_handle_fence(struct session *ss, const struct request *rq,
			  const struct pmi_message *m);
/* What a get of `key` returns: fenced values and the process mapping. */
bool session_find(const struct session *ss, const struct pmi_field *key,
		  const char **value, size_t *len);
/* Bytes the session may still put or have in flight. */
size_t session_room(const struct session *ss);
/* One more request waits; false (and answered) over SESSION_WAITS_MAX. */
bool session_may_wait(struct session *ss, const struct request *rq);

/* ---- session1.c, session2.c: the tables ---- */

const struct command *pmi1_command(const char *name);
const struct command *pmi2_command(const char *name);

/* ---- session_ext.c ---- */

/* Agree on an extension in fullinit; adds fields, and descriptors to pass. */
void ext_negotiate(struct session *ss, const struct pmi_message *m,
		   struct pmi_writer *w, struct passed_fds *fds);
/* Add records to what the next fence carries, or answer. */
bool ext_add_records(struct session *ss, const struct request *rq,
		     const void *records, size_t len);
void ext_put(struct session *ss, const struct request *rq,
	     const struct pmi_message *m);
void ext_fence(struct session *ss, const struct request *rq,
	       const struct pmi_message *m);
void ext_allgather(struct session *ss, const struct request *rq,
		   const struct pmi_message *m);
void ext_read(struct session *ss, const struct request *rq,
	      const struct pmi_message *m);

/* ---- answer.c ---- */

/* Begin a response; the caller adds fields to the writer, then ends it. */
struct pmi_writer *answer_begin(struct session *ss, const struct request *rq,
				int rc);
void answer_end(struct session *ss, const struct request *rq);
/* The descriptors (NULL: none) travel with the first byte, in order. */
void answer_end_fds(struct session *ss, const struct request *rq,
		    const struct passed_fds *fds);
void answer_ok(struct session *ss, const struct request *rq);
/* A gather has ended and lies there. */
void answer_gathered(struct session *ss, const struct request *rq,
		     uint64_t offset, uint64_t len);
/* A ring has ended. */
void answer_ring(struct session *ss, const struct request *rq,
		 const struct coll_ring_result *result);
void answer_error(struct session *ss, const struct request *rq, int rc,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The PMI code of a negative errno, and what to say about it. */
int answer_rc(int error);
const char *answer_text(int error);

/* ---- server_coll.c ---- */

extern const struct coll_ops server_coll_ops;

void collective_fence(struct session *ss, const struct request *rq);
void collective_gather(struct session *ss, const struct request *rq,
		       const struct pmi_field *value, size_t stride);
void collective_ring(struct session *ss, const struct request *rq,
		     uint32_t count, const struct pmi_field *left,
		     const struct pmi_field *right);
/* The rank will not read the gather at `offset` again. */
void collective_done(struct session *ss, uint64_t offset);
void collective_done_all(struct session *ss);
/* Forget what the session has entered and holds. */
void collective_drop(struct session *ss);
/* What failed while answers were held back is answered now. */
void collective_answer_failed(struct pmi_server *s);
/* A message of a neighbour. 0 or -EPROTO. */
int collective_receive(struct pmi_server *s, uint32_t from, const void *head,
		       size_t head_len, struct payload *body);
struct payload *collective_room(struct pmi_server *s, uint32_t from,
				const void *head, size_t head_len, size_t len);

/* ---- server_slots.c ---- */

/* The session is given the slots. */
void slots_attach(struct session *ss);
/* It enters a collective over its socket, after what its slot holds. */
void slots_count_socket(struct session *ss);
/* Take what the session's own slot holds. */
void slots_take_own(struct session *ss);
/* Take what all slots hold; say how many more are needed to look again. */
void slots_update(struct pmi_server *s);
/* A collective has failed. */
void slots_failed(struct pmi_server *s);
/* Answer a request that came through the slot. */
void slots_answer(struct session *ss, const struct request *rq, int rc,
		  uint64_t offset, uint64_t len, const char *text);
/* The same for a ring. Errors as slots_reply_ring. */
int slots_answer_ring(struct session *ss, const struct request *rq,
		      const struct slot_neighbours *n);
/* Wake the ranks if anything was answered. */
void slots_flush(struct pmi_server *s);

/* ---- kvs.c ---- */

void kvs_init(struct kvs *k, struct region_writer *region);
void kvs_free(struct kvs *k);
/*
 * All: 0, -ENOSPC, -EPROTO or -ENOMEM. The image is checked here, unless it is
 * `trusted`: built by this node. A gather has so many `values`: empty ones cost
 * its sender nothing, and here `stride` each. It may stay in its payload: then
 * *keep is a reference that holds it, instead of a later kvs_release.
 */
int kvs_publish_fence(struct kvs *k, struct payload *image, bool trusted);
int kvs_publish_gather(struct kvs *k, struct payload *image, bool trusted,
		       uint32_t values, size_t stride, uint64_t *offset,
		       uint64_t *len, struct payload **keep);
/* Memory for an image of this node: in the region, where it pays. Or NULL. */
struct payload *kvs_room(struct kvs *k, size_t len);
/*
 * A place in the region for an image that is said to have `len` bytes, where that
 * pays, or NULL; and memory for its first bytes. 0 or -ENOSPC.
 */
struct payload *kvs_place(struct kvs *k, size_t len);
int kvs_extend(struct kvs *k, struct payload *place, size_t len);
/* Make look-ups faster: a bounded piece of work. True: go on. */
bool kvs_tidy(struct kvs *k);
/* Is there such work? */
bool kvs_untidy(const struct kvs *k);
/* Make `len` bytes of records the newest generation. */
int kvs_publish_records(struct kvs *k, const void *records, size_t len);
void kvs_release(struct kvs *k, uint64_t offset);
bool kvs_find(const struct kvs *k, const char *key, size_t key_len,
	      const char **value, size_t *value_len);
const void *kvs_bytes(const struct kvs *k, uint64_t offset, uint64_t len);

/* ---- attrs.c ---- */

void attrs_free(struct pmi_server *s);
void attrs_put(struct session *ss, const struct request *rq,
	       const struct pmi_field *key, const struct pmi_field *value);
void attrs_get(struct session *ss, const struct request *rq,
	       const struct pmi_field *key, bool wait);
/* A session has ended: its own waits are dropped, hopeless ones answered. */
void attrs_drop(struct session *ss);
void attrs_fail_hopeless(struct pmi_server *s);
/* Write the value of a job attribute; false when there is no such. */
bool attrs_job(const struct session *ss, const char *key, struct buf *out);

/* ---- requests.c ---- */

/* The handlers of these commands in both protocols. */
void requests_publish(struct session *ss, const struct request *rq,
		      const struct pmi_message *m);
void requests_unpublish(struct session *ss, const struct request *rq,
			const struct pmi_message *m);
void requests_lookup(struct session *ss, const struct request *rq,
		     const struct pmi_message *m);
void requests_spawn(struct session *ss, const struct request *rq,
		    const struct spawn_request *spawn);
/* The rank aborts: alone, or with it the whole step. */
void requests_abort(struct session *ss, bool step, int code, const char *text);
void requests_ready(struct pmi_server *s);
/* Tell the user, through srun. */
void requests_report(struct pmi_server *s, const char *text);
/* A rank has not survived what was reported. */
void requests_gave_up(struct pmi_server *s);
/* A frame from srun. 0 or -EPROTO. */
int requests_reply(struct pmi_server *s, const void *data, size_t len);
void requests_drop(struct session *ss);
void requests_fail_all(struct pmi_server *s, const char *why);

#endif
