/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store of a step: keys with values, and meetings of ranks (barriers and gathers), for
 * programs that do not use PMI. Bytes in, bytes out: calls no system function, and knows
 * neither sockets nor clocks. One object a node; one thread at a time.
 *
 * All keys of the step have one home, the node at the root of the tree. The object of any
 * other node passes requests to its parent (struct store_ops.send), so the nodes of the step
 * share the keys. A front door, such as that of pmi2x-sync or that of PyTorch's TCPStore,
 * makes a client for each of its connections, asks with store_ask, and gets each answer by
 * store_client_ops.answer.
 *
 * Order. The requests of one client take effect in the order in which the client has asked,
 * between the request and its answer. STORE_WAIT, STORE_FETCH and STORE_MEET wait: these take
 * effect when they are answered, and later requests of the client do not wait for them. All
 * nodes see one order of all changes (the store is linearizable). When a node is lost, nodes below
 * it may answer reads from copies until they notice it; their requests fail from then on.
 *
 * Copies. A node may answer a read of one key from a copy of its value. The home recalls all copies
 * before it changes the key (copies.h, recall.h).
 *
 * Re-entrancy. `answer` may be called inside store_ask, store_cancel of another client,
 * store_input and the like. It must not call back into the store: a front door queues.
 *
 * Limits. A request over a limit is answered with STORE_FULL or STORE_INVALID, and a text
 * that names the limit.
 */
#ifndef PMI2X_STORE_H
#define PMI2X_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/layout.h"
#include "libcoll/tree.h"
#include "libutil/payload.h"

#define STORE_KEY_MAX ((size_t)8 << 10)       /* bytes of a key, or of a meeting's name */
#define STORE_VALUE_MAX ((size_t)8 << 20)     /* bytes of a value */
#define STORE_NAME_SHOWN 64                   /* bytes of a key in a text, NUL included */
#define STORE_REQUEST_KEYS_MAX ((uint32_t)128 << 10) /* keys of a request */
#define STORE_REQUEST_NAMES_MAX ((size_t)16 << 20) /* bytes of the keys of a request */
#define STORE_REQUEST_MAX ((size_t)33 << 20)  /* bytes of a packed request */
#define STORE_ANSWER_MAX ((size_t)256 << 20)  /* bytes of the values of an answer */
#define STORE_KEYS_MAX ((uint32_t)1 << 20)    /* keys of the step, awaited ones, too */
#define STORE_PENDING_MAX 65536               /* requests of a client without an answer */
#define STORE_WAITS_MAX ((uint32_t)1 << 20)   /* waiting requests at a node */
#define STORE_TEXT_MAX 1024                   /* bytes of a text, NUL included */
#define STORE_WINDOW ((uint64_t)8 << 20)      /* bytes on the way to a neighbour: window.h */

/* Keys of two spaces never meet, and neither do meetings. */
enum store_space {
	STORE_SYNC,
	STORE_TORCH,
	STORE_AGENT, /* what the agents tell each other: nobody is told that it waits */
	STORE_SPACES,
};

/*
 * Operations. "exists": has a value. A number as a value is decimal text, as PyTorch's
 * TCPStore has it.
 */
enum store_op {
	STORE_SET,         /* key, value */
	STORE_GET,         /* keys: the values, NULL for each key that does not exist */
	/*
	 * key, expected, value: set it if its value is `expected`, or if it does not exist
	 * and `expected` is empty. Answers the value that it has then; `expected`, for a key
	 * that does not exist.
	 */
	STORE_COMPARE_SET,
	STORE_ADD,         /* key, number: the sum; a key that does not exist is 0 */
	STORE_APPEND,      /* key, value: to the end of its value */
	STORE_CHECK,       /* keys: number is 1 if all exist, otherwise 0 */
	STORE_WAIT,        /* keys: answered when all exist */
	STORE_FETCH,       /* keys: as STORE_WAIT, and answers the values */
	STORE_DELETE,      /* key: number is 1 if it existed, otherwise 0 */
	STORE_COUNT,       /* number: how many keys of the space exist */
	/*
	 * key (a name), rank, value: answered when all ranks of the step (with `local`: of
	 * this node) are in the meeting; with `gather` the answer has their values, in the
	 * order of their ranks. A rank that has ended and is not in it fails the meeting.
	 * The name is free again as soon as the meeting has ended.
	 */
	STORE_MEET,
	/* key, and local and gather as STORE_MEET: text names the ranks that are missing. */
	STORE_MISSING,
	STORE_OPS,
};

struct store_bytes {
	const void *data; /* NULL is allowed where len is 0 */
	size_t len;
};

/* Fields that an operation does not use are 0. */
struct store_request {
	enum store_op op;
	bool local;  /* among the tasks of this node only: at home here */
	bool gather; /* STORE_MEET, STORE_MISSING */
	bool behind; /* its client has asked others that have no answer; set by store_ask */
	const struct store_bytes *keys;
	uint32_t nkeys; /* 1, where the operation has `key` */
	struct store_bytes value, expected;
	int64_t number;
	uint32_t rank;
};

enum store_status {
	STORE_OK,
	STORE_INVALID, /* the request, or the value that the key has: see text */
	STORE_FULL,    /* a limit, which text names */
	STORE_FAILED,  /* cannot be answered any more: see text */
	STORE_STATUSES,
};

/* Valid during the call. */
struct store_answer {
	enum store_status status;
	int64_t number;
	/* GET, FETCH, COMPARE_SET and a gather have some; take references to keep them. */
	struct payload *const *values;
	uint32_t nvalues;
	const char *text; /* for people; "" with STORE_OK but for STORE_MISSING */
	/* Between nodes: who gets it may keep the value (copies.h). */
	bool copy;
};

struct store;
struct store_client;

struct store_client_ops {
	/* Once for each store_ask that has not been cancelled. */
	void (*answer)(void *arg, uint64_t token, const struct store_answer *answer);
};

/* ---- for front doors ---- */

/* NULL: no memory. */
struct store_client *store_client_open(struct store *s, enum store_space space,
				       const struct store_client_ops *ops, void *arg);
/*
 * The connection has ended: the client's requests are forgotten, and it leaves the meetings
 * that it is in. Changes that it has made stay. NULL is allowed.
 */
void store_client_close(struct store_client *c);
/*
 * Ask. `token` comes back with the answer; no two requests of a client without an answer may
 * have the same one. `rq` is valid during the call only.
 */
void store_ask(struct store_client *c, uint64_t token, const struct store_request *rq);
/*
 * Give a waiting request up: true, and it will not be answered; false: it has been, or there is
 * no such request.
 */
bool store_cancel(struct store_client *c, uint64_t token);
/*
 * Requests of the client that are not answered. A front door reads no more of a client that
 * has many.
 */
uint32_t store_pending(const struct store_client *c);

/* ---- for the node's host ---- */

struct store_ops {
	/*
	 * Queue a message, whose pieces are referenced, for a neighbour; its store_input gets
	 * it, after all that were sent before. At most STORE_WINDOW bytes and one message are on
	 * their way to a neighbour. NULL: the step has one node.
	 */
	void (*send)(void *arg, uint32_t position, const struct payload_vec *message);
	/* The store is used, here or on another node: make the links. Called once. */
	void (*links_wanted)(void *arg);
	void *arg;
};

struct store_options {
	uint64_t bytes; /* that keys and values may take at their home; 0: STORE_BYTES */
	uint32_t keys;  /* 0: STORE_KEYS_MAX */
	uint64_t seed;  /* of hashes of keys; random, see libutil/hash.h */
	struct budget *budget; /* where they count, too; or NULL */
};

#define STORE_BYTES ((uint64_t)256 << 20)

/*
 * The store at a place of the tree. `layout` and `names` (of nodes, by node id) outlive it, and
 * `ops` is copied. 0 or -ENOMEM.
 */
int store_create(struct store **out, const struct layout *layout,
		 const struct tree_place *place, const char *const *names,
		 const struct store_options *options, const struct store_ops *ops);
/* All clients are closed before. NULL is allowed. */
void store_destroy(struct store *s);

/*
 * A message of the neighbour at `from`. 0; -EPROTO: break the link; -ENOMEM: the same.
 */
int store_input(struct store *s, uint32_t from, struct payload *message);
/*
 * A rank of this node has ended; `how` follows its name, as "exited with exit code 5". Meetings
 * that miss it fail.
 */
void store_rank_gone(struct store *s, uint32_t rank, const char *how);
/*
 * A neighbour has gone: requests of its subtree are forgotten, its ranks are missing from now
 * on; of the parent: all that waits fails, for `why`.
 */
void store_neighbour_gone(struct store *s, uint32_t position, const char *why);

/* Requests of this node's clients that wait, but for those of the agent. */
uint32_t store_waiting(const struct store *s);

/* ---- for people ---- */

/*
 * 0: no client of this node waits for a key, and no meeting waits at a home on this node. Otherwise
 * a number that changes when what has waited longest ends.
 */
uint64_t store_oldest_wait(const struct store *s);
/* Clients of this node that wait for keys of the step. */
struct store_key_wait {
	char key[STORE_NAME_SHOWN]; /* that the oldest one misses, as people read it */
	enum store_space space;
};

/* False: a meeting waits, and is to be reported first, or no client waits for a key of the step. */
bool store_waits_for_key(const struct store *s, struct store_key_wait *out);
/*
 * Call for each such client of that space: its `arg`, the rank of its request, and whether it waits
 * for that key.
 */
void store_each_key_wait(const struct store *s, const struct store_key_wait *wait,
			 void (*fn)(void *arg, void *client_arg, uint32_t rank, bool for_it),
			 void *arg);
/*
 * A line about what has waited for `seconds`: a meeting and the ranks that it misses, or a key and
 * the ranks of this node that wait for it. Empty when nothing waits.
 */
void store_tell_wait(const struct store *s, unsigned seconds, char text[STORE_TEXT_MAX]);

#endif
