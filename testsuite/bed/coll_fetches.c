/* SPDX-License-Identifier: BSD-3-Clause */
/* Fetches in the bed: the questions to hosts, and what the askers get. */
#include "coll.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OP 3

/* The value is the key: the node that asks, and the owner. */
static const char *key_of(const struct bed *b, char out[BED_VALUE_MAX],
			  uint32_t position, uint32_t rank)
{
	if (b->o.varied)
		snprintf(out, BED_VALUE_MAX, "%u of %u", rank, position);
	else
		snprintf(out, BED_VALUE_MAX, "%u", rank);
	return out;
}

int bed_fetch_with(struct bed *b, uint32_t id, uint32_t position,
		   const struct coll_fetch *what)
{
	int rc;

	bed_must(b, id < b->o.fetches_max, "too many fetches for the bed");
	b->fetches[id] = (struct bed_fetch){ position, what->rank, BED_WAITING };
	bed_inside(b, true);
	rc = coll_fetch(b->nodes[position].coll, what, id);
	bed_inside(b, false);
	if (rc)
		b->fetches[id] = (struct bed_fetch){ 0 };
	return rc;
}

int bed_fetch_as(struct bed *b, uint32_t id, uint32_t position, uint32_t rank)
{
	char key[BED_VALUE_MAX];
	struct coll_fetch what = { .op = OP, .rank = rank };

	if (b->o.varied) {
		what.timeout = position;
		what.key = key_of(b, key, position, rank);
		what.key_len = strlen(key);
	}
	return bed_fetch_with(b, id, position, &what);
}

int bed_fetch(struct bed *b, uint32_t position, uint32_t rank)
{
	int rc = bed_fetch_as(b, b->nfetches, position, rank);

	b->nfetches += !rc;
	return rc;
}

static void check_question(const struct bed *b, const struct coll_fetch *what)
{
	char key[BED_VALUE_MAX];

	if (b->o.alone)
		return;
	key_of(b, key, what->timeout, what->rank);
	bed_must(b, what->op == OP, "a host was asked for another operation");
	bed_must(b, b->o.varied ? what->key_len == strlen(key) &&
				  !memcmp(what->key, key, what->key_len) :
				  !what->key_len,
		 "a host was asked with another key");
}

static void add_asked(struct bed *b, const struct bed_asked *a)
{
	uint32_t i = b->nasked;

	bed_must(b, i < b->o.fetches_max, "too many questions for the bed");
	while (i && b->asked[i - 1].position > a->position)
		i--;
	memmove(b->asked + i + 1, b->asked + i, (b->nasked - i) * sizeof(*a));
	b->asked[i] = *a;
	b->nasked++;
}

int bed_fetch_asked(void *arg, uint64_t token, const struct coll_fetch *what)
{
	struct bed_node *n = arg;
	struct bed *b = n->bed;
	bool refused = b->refuses && b->refuses(b, what);

	bed_inside(b, false);
	bed_must(b, b->ready && what->rank < b->nranks &&
			 what->key_len <= COLL_FETCH_KEY_MAX &&
			 layout_rank_position(b->layout, what->rank) == n->position,
		 "a host was asked for a rank of another node");
	check_question(b, what);
	if (!refused)
		add_asked(b, &(struct bed_asked){
			.position = n->position, .from = what->timeout,
			.rank = what->rank, .token = token,
		});
	bed_inside(b, true);
	return refused ? -ENOTSUP : 0;
}

int bed_answer(struct bed *b, uint32_t i, enum coll_fetch_status status)
{
	struct bed_asked a = b->asked[i];
	struct coll_fetched end = { .status = status, .why = "it has its reasons" };
	char key[BED_VALUE_MAX];
	int rc;

	b->nasked--;
	memmove(b->asked + i, b->asked + i + 1, (b->nasked - i) * sizeof(a));
	memset(b->asked + b->nasked, 0, sizeof(a));
	if (status == COLL_FETCH_FOUND)
		end.value = bed_payload(key_of(b, key, a.from, a.rank));
	bed_inside(b, true);
	rc = coll_fetch_answer(b->nodes[a.position].coll, a.token, &end);
	bed_inside(b, false);
	payload_unref(end.value);
	return rc;
}

void bed_fetched(void *arg, uint64_t id, const struct coll_fetched *end)
{
	struct bed *b = ((struct bed_node *)arg)->bed;
	struct bed_fetch *f = &b->fetches[id];
	bool found = end->status == COLL_FETCH_FOUND;
	char key[BED_VALUE_MAX];

	bed_inside(b, false);
	bed_must(b, b->ready && id < b->o.fetches_max && f->outcome == BED_WAITING,
		 "a fetch ended that was not under way");
	f->outcome = found ? BED_DONE : BED_FAILED;
	bed_must(b, !found || b->o.alone ||
			 bed_is_text(end->value, key_of(b, key, f->position, f->rank)),
		 "a node got what it had not asked for");
	bed_must(b, found || (end->why && !end->value), "a fetch failed with a value");
	if (!found)
		bed_note_reason(b, end->why);
	bed_inside(b, true);
}
