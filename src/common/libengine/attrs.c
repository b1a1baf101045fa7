/* SPDX-License-Identifier: BSD-3-Clause */
/* Node attributes, with gets that wait for their put, and job attributes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libengine/engine.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libutil/hash.h"

struct engine_attr {
	char *key;
	char *value;
	size_t value_len;
	UT_hash_handle hh;
};

/* A get with wait=TRUE that nobody has put the key of yet. */
struct attr_wait {
	struct attr_wait *prev, *next;
	struct rank_session *ss;
	struct rank_request rq;
	char key[PMI_KEYLEN_MAX];
};

/* ---- node attributes ---- */

static struct engine_attr *find_attr(const struct pmi_server *s,
				     const char *key)
{
	size_t len = strlen(key);
	uint32_t hash = hash_seeded(s->step->hash_seed, key, len);
	struct engine_attr *a;

	HASH_FIND_BYHASHVALUE(hh, s->attrs, key, len, hash, a);
	return a;
}

static void free_attr(struct engine_attr *a)
{
	free(a->key);
	free(a->value);
	free(a);
}

void attrs_free(struct pmi_server *s)
{
	struct engine_attr *a, *next;

	HASH_ITER(hh, s->attrs, a, next) {
		HASH_DEL(s->attrs, a);
		free_attr(a);
	}
}

static char *copy_bytes(const struct pmi_field *f)
{
	char *copy = malloc(f->value_len + 1);

	if (copy)
		memcpy(copy, f->value, f->value_len + 1);
	return copy;
}

static struct engine_attr *new_attr(struct pmi_server *s,
				    const struct pmi_field *key)
{
	size_t len = strlen(key->value);
	uint32_t hash = hash_seeded(s->step->hash_seed, key->value, len);
	struct engine_attr *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->key = copy_bytes(key);
	if (a->key)
		HASH_ADD_KEYPTR_BYHASHVALUE(hh, s->attrs, a->key, len, hash, a);
	if (!a->hh.tbl) {
		free_attr(a);
		return NULL;
	}
	return a;
}

/* A second put replaces the value. */
static struct engine_attr *set_attr(struct pmi_server *s,
				    const struct pmi_field *key,
				    const struct pmi_field *value)
{
	struct engine_attr *a = find_attr(s, key->value);
	char *copy = copy_bytes(value);

	if (copy && !a)
		a = new_attr(s, key);
	if (!copy || !a) {
		free(copy);
		return NULL;
	}
	free(a->value);
	a->value = copy;
	a->value_len = value->value_len;
	return a;
}

static void answer_attr(struct rank_session *ss, const struct rank_request *rq,
			const struct engine_attr *a)
{
	answer_found(ss, rq, a ? a->value : NULL, a ? a->value_len : 0);
}

static void remove_wait(struct pmi_server *s, struct attr_wait *wait)
{
	DL_DELETE(s->attr_waits, wait);
	s->attr_waits_ended++;
	wait->ss->waits--;
	free(wait);
}

static void fail_wait(struct pmi_server *s, struct attr_wait *wait,
		      const char *why)
{
	answer_error(wait->ss, &wait->rq, PMI_RC_FAIL, "node attribute %s: %s",
		     wait->key, why);
	remove_wait(s, wait);
}

static void answer_waits(struct pmi_server *s, const struct engine_attr *a)
{
	struct attr_wait *wait, *next;

	DL_FOREACH_SAFE(s->attr_waits, wait, next)
		if (strcmp(wait->key, a->key) == 0) {
			answer_attr(wait->ss, &wait->rq, a);
			remove_wait(s, wait);
		}
}

void attrs_put(struct rank_session *ss, const struct rank_request *rq,
	       const struct pmi_field *key, const struct pmi_field *value)
{
	struct pmi_server *s = ss->server;
	struct engine_attr *a;

	if (!find_attr(s, key->value) &&
	    HASH_COUNT(s->attrs) >= PMI_NODE_ATTRS_MAX) {
		answer_error(ss, rq, PMI_RC_NOMEM,
			     "the node has %d attributes already",
			     PMI_NODE_ATTRS_MAX);
		return;
	}
	a = set_attr(s, key, value);
	if (!a) {
		answer_error(ss, rq, PMI_RC_NOMEM, "out of memory");
		return;
	}
	answer_ok(ss, rq);
	answer_waits(s, a);
}

static void add_wait(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_field *key)
{
	struct attr_wait *wait;

	if (!rank_may_wait(ss, rq))
		return;
	wait = calloc(1, sizeof(*wait));
	if (!wait) {
		answer_error(ss, rq, PMI_RC_NOMEM, "out of memory");
		return;
	}
	wait->ss = ss;
	wait->rq = *rq;
	snprintf(wait->key, sizeof(wait->key), "%s", key->value);
	ss->waits++;
	DL_APPEND(ss->server->attr_waits, wait);
	attrs_fail_hopeless(ss->server);
}

void attrs_get(struct rank_session *ss, const struct rank_request *rq,
	       const struct pmi_field *key, bool wait)
{
	struct engine_attr *a = find_attr(ss->server, key->value);

	if (a || !wait)
		answer_attr(ss, rq, a);
	else
		add_wait(ss, rq, key);
}

void attrs_drop(struct rank_session *ss)
{
	struct attr_wait *wait, *next;

	DL_FOREACH_SAFE(ss->server->attr_waits, wait, next)
		if (wait->ss == ss)
			remove_wait(ss->server, wait);
}

/* True: another rank of the node may still put. */
static bool has_peer(const struct rank_session *ss)
{
	const struct pmi_server *s = ss->server;

	for (uint32_t i = 0; i < s->nslots; i++)
		if (i != ss->slot && s->sessions[i].state != RANK_GONE)
			return true;
	return false;
}

void attrs_fail_hopeless(struct pmi_server *s)
{
	struct attr_wait *wait, *next;
	char why[WHY_MAX];

	snprintf(why, sizeof(why), "no other rank of node %s is left to put it",
		 engine_node_name(s));
	DL_FOREACH_SAFE(s->attr_waits, wait, next)
		if (!has_peer(wait->ss))
			fail_wait(s, wait, why);
}

void attrs_tell_wait(const struct pmi_server *s, unsigned seconds,
		     char text[PMI_WAIT_TEXT_MAX])
{
	const struct attr_wait *first = s->attr_waits;

	if (first)
		snprintf(text, PMI_WAIT_TEXT_MAX,
			 "node attribute %s: %u s, rank %u waits for it, and no "
			 "rank of node %s has put it",
			 first->key, seconds, first->ss->rank,
			 engine_node_name(s));
}

void attrs_expire(struct pmi_server *s, const char *why)
{
	struct attr_wait *wait, *next;

	DL_FOREACH_SAFE(s->attr_waits, wait, next)
		fail_wait(s, wait, why);
}

/* ---- job attributes ---- */

typedef const char *(*attr_text)(const struct pmi_step *step);

static const char *mapping(const struct pmi_step *step)
{
	return step->mapping;
}

static const char *netinfo(const struct pmi_step *step)
{
	return step->netinfo ? step->netinfo(step->netinfo_arg) : NULL;
}

static const char *reserved_ports(const struct pmi_step *step)
{
	return step->reserved_ports;
}

static const char *has_name_service(const struct pmi_step *step)
{
	return "TRUE";
}

static const struct {
	const char *key;
	attr_text text;
} TEXT_ATTRS[] = {
	{MAPPING_KEY, mapping},
	{"PMI_netinfo_of_task", netinfo},
	{"mpi_reserved_ports", reserved_ports},
	{"hasNameServ", has_name_service},
};

static bool text_attr(const struct pmi_step *step, const char *key,
		      struct buf *out)
{
	for (size_t i = 0; i < sizeof(TEXT_ATTRS) / sizeof(TEXT_ATTRS[0]); i++)
		if (strcmp(TEXT_ATTRS[i].key, key) == 0) {
			const char *text = TEXT_ATTRS[i].text(step);

			return text && !buf_puts(out, text);
		}
	/* physTopology is asked for, but nobody says what it should hold. */
	return false;
}

bool attrs_job(const struct rank_session *ss, const char *key, struct buf *out)
{
	const struct pmi_step *step = ss->server->step;

	if (strcmp(key, "universeSize") == 0)
		return !buf_printf(out, "%u", step->universe_size);
	if (strcmp(key, "appnum") == 0)
		return !buf_printf(out, "%d",
				   engine_appnum(ss->server, ss->rank));
	return text_attr(step, key, out);
}
