/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connects and fences across namespaces (xns), each of which has its own servers. First the
 * members of each namespace enter as in a collective of one namespace, with the data that
 * they have committed. Then the server of a namespace's first member publishes these data
 * through srun, and the server of each member looks up the data of the other namespaces.
 * This file keeps them until clients get them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helpers/pmixd/names.h"
#include "helpers/pmixd/server_internal.h"
#include "libutil/hash.h"

/* Published in place of entries, which are longer: too many bytes, or the collective failed. */
#define TOO_MUCH '!'
#define FAILED '?'
#define LIMIT_MS 600000 /* for other namespaces whose processes live */

/* Data of processes of a namespace that has other servers: an entry for each. */
struct remote_nspace {
	struct remote_nspace *next;
	pmix_nspace_t nspace;
	size_t len;
	char entries[];
};

/* A set of processes, and how often it has connected. */
struct member_set {
	struct member_set *next;
	unsigned char hash[HASH_NAME_SIZE];
	uint32_t times;
};

/* ---- members ---- */

static const pmix_proc_t *members(const struct event *e, size_t *count)
{
	*count = e->len / sizeof(pmix_proc_t);
	return (const pmix_proc_t *)e->data;
}

struct job *server_job_of(const struct server *s, const struct event *e)
{
	size_t n;
	const pmix_proc_t *procs = members(e, &n);

	for (struct job *j = s->jobs; j; j = j->next)
		for (size_t i = 0; i < n; i++)
			if (!strcmp(procs[i].nspace, j->nspace.name))
				return j;
	return NULL;
}

/* Reduce the event's ranks to the members in the namespace; the others go into x. */
static void take_members(struct event *e, const struct job *j, struct xns_connect *x)
{
	size_t n, own = 0;
	const pmix_proc_t *procs = members(e, &n);
	bool all = false;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(procs[i].nspace, j->nspace.name)) {
			all |= procs[i].rank == PMIX_RANK_WILDCARD;
			e->ranks[own++] = procs[i].rank;
		} else {
			x->remote_procs[x->count++] = procs[i];
		}
	}
	e->count = (uint32_t)own;
	if (!all)
		return;
	free(e->ranks);
	e->ranks = NULL;
	e->count = 0;
}

/* ---- number of a connect ---- */

static int by_proc(const void *a, const void *b)
{
	const pmix_proc_t *x = a, *y = b;
	int order = strncmp(x->nspace, y->nspace, PMIX_MAX_NSLEN);

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* All members compute the same hash, in whatever order the client lists them. */
static int hash_members(unsigned char hash[HASH_NAME_SIZE], struct event *e)
{
	size_t n = e->len / sizeof(pmix_proc_t);
	pmix_proc_t *procs = (pmix_proc_t *)e->data;
	struct buf b;
	int rc;

	qsort(procs, n, sizeof(*procs), by_proc);
	buf_init(&b, SIZE_MAX);
	rc = pack_u8(&b, (uint8_t)(2 * e->type + e->destruct));
	for (size_t i = 0; i < n && !rc; i++) {
		rc = pack_str(&b, procs[i].nspace);
		rc = rc ? rc : pack_u32(&b, procs[i].rank);
	}
	if (!rc)
		hash_name(hash, b.data, b.len);
	buf_free(&b);
	return rc;
}

static int add_member_set(struct server *s, const unsigned char *hash)
{
	struct member_set *c;

	if (s->nmember_sets >= MEMBER_SETS_MAX)
		return server_full(s, "different sets of processes that have connected",
				   MEMBER_SETS_MAX);
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	memcpy(c->hash, hash, HASH_NAME_SIZE);
	c->next = s->member_sets;
	s->member_sets = c;
	s->nmember_sets++;
	return 0;
}

/* How often this set has connected, with this time; or a negative errno. */
static int64_t count_connects(struct server *s, const unsigned char *hash)
{
	struct member_set *c = s->member_sets;
	int rc = 0;

	while (c && memcmp(c->hash, hash, HASH_NAME_SIZE))
		c = c->next;
	if (!c) {
		rc = add_member_set(s, hash);
		c = s->member_sets;
	}
	return rc ? (int64_t)rc : (int64_t)++c->times;
}

static int make_tag(struct server *s, struct event *e, char tag[XNS_TAG_MAX])
{
	unsigned char hash[HASH_NAME_SIZE];
	int at = 0, rc = hash_members(hash, e);
	int64_t times = rc ? rc : count_connects(s, hash);

	if (times < 0)
		return (int)times;
	for (size_t i = 0; i < HASH_NAME_SIZE; i++)
		at += sprintf(tag + at, "%02x", hash[i]);
	sprintf(tag + at, ".%u", (uint32_t)times);
	return 0;
}

/* ---- in the own namespace ---- */

static struct xns_connect *new_xns_connect(const struct event *e)
{
	size_t n = e->len / sizeof(pmix_proc_t);

	return calloc(1, sizeof(struct xns_connect) + n * sizeof(pmix_proc_t));
}

int server_xns_enter(struct server *s, struct job *j, struct event *e)
{
	struct xns_connect *x = new_xns_connect(e);
	int rc = x ? make_tag(s, e, x->tag) : -ENOMEM;

	e->xns_connect = x;
	if (rc) {
		server_answer(&e->callback, server_status(rc), NULL, 0);
		return 0;
	}
	x->with_data = e->collect || (e->type == EVENT_CONNECT && !e->destruct);
	e->type = EVENT_CONNECT; /* a fence, too, is a connect in its own namespace */
	take_members(e, j, x);
	e->xns = false;
	e->text = strdup(x->tag);
	e->unserved = !e->text;
	return server_enter(s, j, e);
}

/* ---- between namespaces ---- */

static void name_key(char key[NAMES_KEY_MAX + 1], const struct xns_connect *x,
		     const char *nspace)
{
	snprintf(key, NAMES_KEY_MAX + 1, "pmi2x %s %.255s", x->tag, nspace);
}

/* NAMES_LOOKUP takes over the callback of c and reports errors to it; NAMES_PUBLISH returns them. */
static int ask(struct server *s, struct call *c, struct names_request *r)
{
	struct event e = { .type = EVENT_NAMES, .rank = c->xns_connect->rank };
	struct buf b;
	int rc;

	if (r->op == NAMES_LOOKUP) {
		e.callback = c->callback;
		e.xns_connect = c->xns_connect;
		c->xns_connect = NULL;
	}
	buf_init(&b, NAMES_BYTES_MAX);
	rc = names_pack_request(&b, r);
	e.data = b.data;
	e.len = b.len;
	if (!rc)
		rc = server_ask(s, c->job, &e);
	if (rc)
		server_answer(&e.callback, server_status(rc), NULL, 0);
	buf_free(&b);
	free(e.xns_connect);
	return r->op == NAMES_LOOKUP ? 0 : rc;
}

static int publish(struct server *s, struct call *c, const struct pmix_msg *m)
{
	char key[NAMES_KEY_MAX + 1];
	struct names_item item = { .key = key, .value = m->data, .len = m->len };
	struct names_request r = {
		.op = NAMES_PUBLISH, .range = NAMES_OF_SESSION, .items = &item, .count = 1,
	};
	char mark = m->status ? FAILED : m->len > NAMES_BYTES_MAX / 2 ? TOO_MUCH : 0;

	name_key(key, c->xns_connect, c->job->nspace.name);
	if (mark) { /* publish the mark, so that no namespace waits for data */
		item.value = &mark;
		item.len = 1;
	}
	return ask(s, c, &r);
}

/* The names to look up: one key for each other namespace, with its members. */
struct wanted {
	struct names_item *items;
	char (*keys)[NAMES_KEY_MAX + 1];
	struct buf ranks; /* of all, as in pack.h */
	uint32_t count;
};

/* Add the namespace whose members begin at `at`; returns where those of the next begin. */
static uint32_t want(struct wanted *w, const struct xns_connect *x, uint32_t at)
{
	struct names_item *item = &w->items[w->count];
	const char *nspace = x->remote_procs[at].nspace;
	bool all = false;

	name_key(w->keys[w->count], x, nspace);
	item->key = w->keys[w->count++];
	item->from.nspace = nspace;
	item->ranks = w->ranks.data + w->ranks.len;
	for (; at < x->count && !strcmp(x->remote_procs[at].nspace, nspace); at++) {
		all |= x->remote_procs[at].rank == PMIX_RANK_WILDCARD;
		pack_u32(&w->ranks, x->remote_procs[at].rank);
	}
	item->ranks_len = all ? 0 : w->ranks.data + w->ranks.len - (char *)item->ranks;
	return at;
}

static uint32_t left_ms(const struct call *c)
{
	int64_t left = c->deadline == SERVER_NEVER ? LIMIT_MS :
						     c->deadline - server_now();

	return left > LIMIT_MS ? LIMIT_MS : left > 1 ? (uint32_t)left : 1;
}

static int look_up(struct server *s, struct call *c)
{
	const struct xns_connect *x = c->xns_connect;
	struct wanted w = {
		.items = calloc(x->count, sizeof(*w.items)),
		.keys = calloc(x->count, sizeof(*w.keys)),
	};
	struct names_request r = {
		.op = NAMES_LOOKUP, .range = NAMES_OF_SESSION, .timeout_ms = left_ms(c),
	};
	int rc = -ENOMEM;

	buf_init(&w.ranks, x->count * sizeof(uint32_t));
	if (w.items && w.keys && !buf_reserve(&w.ranks, x->count * sizeof(uint32_t))) {
		for (uint32_t at = 0; at < x->count;)
			at = want(&w, x, at);
		r.items = w.items;
		r.count = r.wait = w.count;
		rc = ask(s, c, &r);
	}
	free(w.items);
	free(w.keys);
	buf_free(&w.ranks);
	return rc;
}

/*
 * The server of the lowest rank publishes for its namespace. A failure is published by
 * every server, because that rank may have exited: the first one counts.
 */
static bool publishes(const struct call *c, int status)
{
	const struct layout *l = c->job->nspace.layout;
	uint32_t first = c->xns_connect->first;

	return status || layout_rank_position(l, first) == c->job->nspace.position;
}

void server_xns_gathered(struct server *s, struct call *c, const struct pmix_msg *m)
{
	int published = publishes(c, m->status) ? publish(s, c, m) : 0;
	int rc = m->status ? m->status : published;

	if (!rc)
		rc = look_up(s, c);
	if (rc)
		server_answer(&c->callback, server_status(rc), NULL, 0);
}

/* ---- data of other namespaces ---- */

static struct remote_nspace **find_remote_nspace(struct server *s, const char *nspace)
{
	struct remote_nspace **at = &s->remote_nspaces;

	while (*at && strcmp((*at)->nspace, nspace))
		at = &(*at)->next;
	return at;
}

/* Register a new namespace: libpmix would wait for clients of one that is not registered. */
static int keep(struct server *s, const char *nspace, const void *entries, size_t len)
{
	struct remote_nspace **at = find_remote_nspace(s, nspace), *old = *at;
	size_t bytes = s->remote_bytes - (old ? old->len : 0) + len;
	struct remote_nspace *f;

	if (!old && s->nremote_nspaces >= REMOTE_NSPACES_MAX)
		return server_full(s, "namespaces that clients have asked about", REMOTE_NSPACES_MAX);
	if (bytes > REMOTE_BYTES_MAX)
		return server_full(s, "bytes of processes of other namespaces",
				   REMOTE_BYTES_MAX);
	f = malloc(sizeof(*f) + len);
	if (!f)
		return -ENOMEM;
	s->remote_bytes = bytes;
	s->nremote_nspaces += !old;
	snprintf(f->nspace, sizeof(f->nspace), "%s", nspace);
	f->len = len;
	if (len)
		memcpy(f->entries, entries, len);
	f->next = old ? old->next : NULL;
	*at = f;
	if (!old)
		(void)server_count_clients(s, f->nspace, 0);
	free(old);
	return 0;
}

static int error_of(const struct names_item *item)
{
	if (item->from.nspace && item->len == 1 && *(const char *)item->value == FAILED)
		return -ECONNRESET;
	return item->from.nspace && item->len != 1 ? 0 : -EMSGSIZE;
}

void server_xns_found(struct server *s, const struct call *c, int error,
			   const struct names_answer *a)
{
	for (uint32_t i = 0; i < a->count && !error; i++) {
		error = error_of(&a->items[i]);
		if (!error && c->xns_connect->with_data)
			error = keep(s, a->items[i].from.nspace, a->items[i].value,
				     a->items[i].len);
	}
	server_answer(&c->callback, server_status(error), NULL, 0);
}

static bool find_entry(const struct remote_nspace *f, uint32_t rank, const void **data,
		       size_t *len)
{
	struct pmix_entry entry;
	struct cursor c;

	cursor_init(&c, f->entries, f->len);
	while (pmix_entry_next(&c, &entry))
		if (entry.rank == rank && entry.len > 1) {
			*data = (const char *)entry.bytes + 1; /* behind its kind */
			*len = entry.len - 1;
			return true;
		}
	return false;
}

bool server_find_remote_proc(struct server *s, const struct event *e, const void **data,
			 size_t *len)
{
	const struct remote_nspace *f = *find_remote_nspace(s, e->nspace);

	return f && find_entry(f, e->rank, data, len);
}

int server_keep_remote_nspace(struct server *s, const char *nspace)
{
	return *find_remote_nspace(s, nspace) ? 0 : keep(s, nspace, NULL, 0);
}
