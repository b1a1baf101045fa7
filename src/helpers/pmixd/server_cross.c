/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections, and fences, of processes of several namespaces, each with servers of its
 * own. In each the members meet as in one of a single namespace, and bring what they have committed;
 * the server of the first of them publishes that, and all look up that of the others: srun
 * keeps it, as it does what clients publish. It stays here for who asks for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "helpers/pmixd/names.h"
#include "helpers/pmixd/server_internal.h"
#include "libutil/hash.h"

/* In place of entries, which are longer: there are too many, or the members have not met. */
#define TOO_MUCH '!'
#define FAILED '?'
#define LIMIT_MS 600000 /* that the others have to come, while they live */

/* Knowledge about a process elsewhere: entries of all of its namespace. */
struct foreign {
	struct foreign *next;
	pmix_nspace_t nspace;
	size_t len;
	char entries[];
};

/* How often the same have connected. */
struct crossed {
	struct crossed *next;
	unsigned char hash[HASH_NAME_SIZE];
	uint32_t times;
};

/* ---- who ---- */

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

/* The event's ranks become those of the namespace. */
static void take_members(struct event *e, const struct job *j, struct crossing *x)
{
	size_t n, own = 0;
	const pmix_proc_t *procs = members(e, &n);
	bool all = false;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(procs[i].nspace, j->nspace.name)) {
			all |= procs[i].rank == PMIX_RANK_WILDCARD;
			e->ranks[own++] = procs[i].rank;
		} else {
			x->foreign[x->count++] = procs[i];
		}
	}
	e->count = (uint32_t)own;
	if (!all)
		return;
	free(e->ranks);
	e->ranks = NULL;
	e->count = 0;
}

/* ---- which ---- */

static int by_proc(const void *a, const void *b)
{
	const pmix_proc_t *x = a, *y = b;
	int order = strncmp(x->nspace, y->nspace, PMIX_MAX_NSLEN);

	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* All members agree on it, in whatever order they are listed. */
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

static int add_crossed(struct server *s, const unsigned char *hash)
{
	struct crossed *c;

	if (s->ncrossed >= CROSSED_MAX)
		return server_full(s, "different sets of processes that have connected",
				   CROSSED_MAX);
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	memcpy(c->hash, hash, HASH_NAME_SIZE);
	c->next = s->crossed;
	s->crossed = c;
	s->ncrossed++;
	return 0;
}

/* How many times these have connected, with this one; or a negative errno. */
static int64_t count_crossing(struct server *s, const unsigned char *hash)
{
	struct crossed *c = s->crossed;
	int rc = 0;

	while (c && memcmp(c->hash, hash, HASH_NAME_SIZE))
		c = c->next;
	if (!c) {
		rc = add_crossed(s, hash);
		c = s->crossed;
	}
	return rc ? (int64_t)rc : (int64_t)++c->times;
}

static int make_tag(struct server *s, struct event *e, char tag[CROSSING_TAG_MAX])
{
	unsigned char hash[HASH_NAME_SIZE];
	int at = 0, rc = hash_members(hash, e);
	int64_t times = rc ? rc : count_crossing(s, hash);

	if (times < 0)
		return (int)times;
	for (size_t i = 0; i < HASH_NAME_SIZE; i++)
		at += sprintf(tag + at, "%02x", hash[i]);
	sprintf(tag + at, ".%u", (uint32_t)times);
	return 0;
}

/* ---- in the namespace ---- */

static struct crossing *new_crossing(const struct event *e)
{
	size_t n = e->len / sizeof(pmix_proc_t);

	return calloc(1, sizeof(struct crossing) + n * sizeof(pmix_proc_t));
}

int server_cross(struct server *s, struct job *j, struct event *e)
{
	struct crossing *x = new_crossing(e);
	int rc = x ? make_tag(s, e, x->tag) : -ENOMEM;

	e->crossing = x;
	if (rc) {
		server_answer(&e->callback, server_status(rc), NULL, 0);
		return 0;
	}
	x->brings = e->collect || (e->type == EVENT_CONNECT && !e->destruct);
	e->type = EVENT_CONNECT; /* also a fence, but in the namespace */
	take_members(e, j, x);
	e->foreign = false;
	e->text = strdup(x->tag);
	e->unserved = !e->text;
	return server_enter(s, j, e);
}

/* ---- with the others ---- */

static void name_key(char key[NAMES_KEY_MAX + 1], const struct crossing *x,
		     const char *nspace)
{
	snprintf(key, NAMES_KEY_MAX + 1, "pmi2x %s %.255s", x->tag, nspace);
}

/* With a look-up who waits is its own, and is answered; else an error is returned. */
static int ask(struct server *s, struct call *c, struct names_request *r)
{
	struct event e = { .type = EVENT_NAMES, .rank = c->crossing->rank };
	struct buf b;
	int rc;

	if (r->op == NAMES_LOOKUP) {
		e.callback = c->callback;
		e.crossing = c->crossing;
		c->crossing = NULL;
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
	free(e.crossing);
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

	name_key(key, c->crossing, c->job->nspace.name);
	if (mark) { /* nobody is to wait for it */
		item.value = &mark;
		item.len = 1;
	}
	return ask(s, c, &r);
}

/* The names to look up: a key of each namespace, and the members that it comes of. */
struct wanted {
	struct names_item *items;
	char (*keys)[NAMES_KEY_MAX + 1];
	struct buf ranks; /* of all, as in pack.h */
	uint32_t count;
};

/* The next namespace, whose members begin at `at`; the next begins where that ends. */
static uint32_t want(struct wanted *w, const struct crossing *x, uint32_t at)
{
	struct names_item *item = &w->items[w->count];
	const char *nspace = x->foreign[at].nspace;
	bool all = false;

	name_key(w->keys[w->count], x, nspace);
	item->key = w->keys[w->count++];
	item->from.nspace = nspace;
	item->ranks = w->ranks.data + w->ranks.len;
	for (; at < x->count && !strcmp(x->foreign[at].nspace, nspace); at++) {
		all |= x->foreign[at].rank == PMIX_RANK_WILDCARD;
		pack_u32(&w->ranks, x->foreign[at].rank);
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
	const struct crossing *x = c->crossing;
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
 * The lowest rank's server speaks for all. That they have not met each says, for that rank
 * may have gone: the first one counts.
 */
static bool speaks(const struct call *c, int status)
{
	const struct layout *l = c->job->nspace.layout;
	uint32_t first = c->crossing->first;

	return status || layout_rank_position(l, first) == c->job->nspace.position;
}

void server_crossing_gathered(struct server *s, struct call *c, const struct pmix_msg *m)
{
	int told = speaks(c, m->status) ? publish(s, c, m) : 0;
	int rc = m->status ? m->status : told;

	if (!rc)
		rc = look_up(s, c);
	if (rc)
		server_answer(&c->callback, server_status(rc), NULL, 0);
}

/* ---- what they have brought ---- */

static struct foreign **find_foreign(struct server *s, const char *nspace)
{
	struct foreign **at = &s->foreign;

	while (*at && strcmp((*at)->nspace, nspace))
		at = &(*at)->next;
	return at;
}

/* libpmix waits for clients of a namespace that it has heard of and that is not registered. */
static int keep(struct server *s, const char *nspace, const void *entries, size_t len)
{
	struct foreign **at = find_foreign(s, nspace), *old = *at;
	size_t bytes = s->foreign_bytes - (old ? old->len : 0) + len;
	struct foreign *f;

	if (!old && s->nforeign >= FOREIGN_MAX)
		return server_full(s, "namespaces that clients have asked about", FOREIGN_MAX);
	if (bytes > FOREIGN_BYTES_MAX)
		return server_full(s, "bytes of processes of other namespaces",
				   FOREIGN_BYTES_MAX);
	f = malloc(sizeof(*f) + len);
	if (!f)
		return -ENOMEM;
	s->foreign_bytes = bytes;
	s->nforeign += !old;
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

static int what_lacks(const struct names_item *item)
{
	if (item->from.nspace && item->len == 1 && *(const char *)item->value == FAILED)
		return -ECONNRESET;
	return item->from.nspace && item->len != 1 ? 0 : -EMSGSIZE;
}

void server_crossing_found(struct server *s, const struct call *c, int error,
			   const struct names_answer *a)
{
	for (uint32_t i = 0; i < a->count && !error; i++) {
		error = what_lacks(&a->items[i]);
		if (!error && c->crossing->brings)
			error = keep(s, a->items[i].from.nspace, a->items[i].value,
				     a->items[i].len);
	}
	server_answer(&c->callback, server_status(error), NULL, 0);
}

static bool find_entry(const struct foreign *f, uint32_t rank, const void **data,
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

bool server_find_foreign(struct server *s, const struct event *e, const void **data,
			 size_t *len)
{
	const struct foreign *f = *find_foreign(s, e->nspace);

	return f && find_entry(f, e->rank, data, len);
}

int server_asked_of_foreign(struct server *s, const char *nspace)
{
	return *find_foreign(s, nspace) ? 0 : keep(s, nspace, NULL, 0);
}
