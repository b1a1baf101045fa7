/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events from libpmix's thread to the program's: the former's calls do nothing but put
 * one of these into a queue. Any thread may push; one takes.
 */
#pragma once

#include <pmix_server.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_type {
	EVENT_CONNECTED, /* a client */
	EVENT_FINALIZED,
	EVENT_LOST,      /* a client is gone without goodbye */
	EVENT_ABORT,
	EVENT_FENCE,     /* all members of this node have entered one */
	EVENT_GROUP,     /* the same, to construct or destruct a group */
	EVENT_CONNECT,   /* the same, to connect or disconnect them */
	EVENT_NOTIFY,    /* other nodes are to be told an event of PMIx */
	EVENT_GET,       /* data of a rank of another node are asked for */
	EVENT_SPAWN,     /* a client starts others */
	EVENT_NAMES,     /* a client publishes, takes back or looks up */
	EVENT_COMMITTED, /* libpmix has the data that a rank of this node has committed */
};

/* How libpmix gets the answer to a call: one of these functions, or none. */
struct callback {
	pmix_modex_cbfunc_t data;
	pmix_info_cbfunc_t infos;
	pmix_op_cbfunc_t status;
	pmix_lookup_cbfunc_t found;
	pmix_spawn_cbfunc_t spawned;
	void *arg;
};

struct event {
	struct event *next;
	enum event_type type;
	pmix_nspace_t nspace;
	uint32_t rank;       /* the client's rank; unused for FENCE and GROUP */
	int32_t status;      /* of ABORT: exit code; of COMMITTED: of libpmix */
	uint32_t timeout_ms; /* of GET, FENCE and CONNECT; EVENT_NO_TIMEOUT: none */
	bool collect;        /* of FENCE: with data */
	bool destruct;       /* of GROUP; of CONNECT: disconnect */
	bool context;        /* of GROUP: a context id is wanted */
	bool local;          /* of GROUP: no other node has to know */
	bool xns;            /* of FENCE, GROUP, CONNECT: a member is of another namespace */
	bool unserved;       /* of GROUP: it cannot be, as it is asked for */
	bool lost;           /* of FENCE, GROUP, CONNECT: a member of this node has died */
	uint32_t *ranks;     /* of FENCE, GROUP, CONNECT: members, as the client lists them; */
	uint32_t count;      /* NULL: all */
	char *text;          /* of GET: a key; of ABORT: a message; or NULL; of GROUP: name */
	char *data;          /* of FENCE, GROUP and COMMITTED; of NAMES: names_pack_request;
	                        of SPAWN: spawn_pack; of NOTIFY: notify.h; of CONNECT and
	                        FENCE beyond the namespace: all members, pmix_proc_t */
	size_t len;
	struct xns_connect *xns_connect; /* of CONNECT: beyond the namespace, or NULL */
	struct callback callback;    /* of FENCE, GROUP, CONNECT, GET, NAMES and ABORT */
	uint64_t id;         /* of COMMITTED: who has asked */
};

#define EVENT_NO_TIMEOUT UINT32_MAX

/* NULL: there is no memory. */
struct event *event_create(enum event_type type, const pmix_proc_t *proc);
void event_free(struct event *e);

struct events;

/* 0 or a negative errno. */
int events_create(struct events **out);
/* Readable when there is something to take. */
int events_fd(const struct events *q);
void events_push(struct events *q, struct event *e);
/* The next, which the caller frees; NULL: none. */
struct event *events_take(struct events *q);
