/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of the nodes of the bed, and the values that ranks contribute and expect. */
#include "coll.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

/* Varied ones do not all have the same length, and some are empty. */
const char *bed_value(const struct bed *b, char out[BED_VALUE_MAX], const char *what,
		      uint32_t rank, uint32_t seq)
{
	if (!b->o.varied)
		snprintf(out, BED_VALUE_MAX, "%c%u%u", *what, rank, seq);
	else if ((rank + seq) % 5 == 4)
		out[0] = '\0';
	else
		snprintf(out, BED_VALUE_MAX, "%s%u.%u%.*s;", what, rank, seq,
			 (int)(rank % 7), "-------");
	return out;
}

uint64_t bed_ring_count(const struct bed *b, uint32_t rank, uint32_t seq)
{
	return b->o.varied ? (rank + seq) % 4 : 1;
}

struct payload *bed_payload(const char *text)
{
	return *text ? payload_copy(text, strlen(text)) : NULL;
}

bool bed_is_text(const struct payload *p, const char *text)
{
	size_t len = strlen(text);

	return (p ? p->len : 0) == len && (!len || !memcmp(p->data, text, len));
}

static void print_prefix(const struct bed *b, struct buf *out, enum coll_kind kind,
			 uint32_t seq)
{
	if (b->o.varied)
		buf_printf(out, "%s %u:", coll_kind_name(kind), seq);
}

static bool result_is_right(const struct bed *b, enum coll_kind kind, uint32_t seq,
			    const struct payload *result)
{
	struct buf expected;
	char value[BED_VALUE_MAX];
	bool right;

	buf_init(&expected, SIZE_MAX);
	print_prefix(b, &expected, kind, seq);
	for (uint32_t i = 0; i < b->nranks; i++)
		buf_puts(&expected, bed_value(b, value, coll_kind_name(kind),
					      layout_order(b->layout)[i], seq));
	right = bed_is_text(result, buf_cstr(&expected));
	buf_free(&expected);
	return right;
}

static bool ring_is_right(const struct bed *b, uint32_t seq, uint32_t rank,
			  const struct coll_ring_result *result)
{
	const uint32_t *order = layout_order(b->layout);
	uint32_t n = b->nranks, i = 0, before, after;
	uint64_t count = 0, total = 0;
	char left[BED_VALUE_MAX], right[BED_VALUE_MAX];

	for (uint32_t j = 0; j < n; j++)
		total += bed_ring_count(b, order[j], seq);
	for (; order[i] != rank; i++)
		count += bed_ring_count(b, order[i], seq);
	before = order[(i + n - 1) % n];
	after = order[(i + 1) % n];
	return result->rank == count && result->size == total &&
	       bed_is_text(result->left, bed_value(b, left, "right", before, seq)) &&
	       bed_is_text(result->right, bed_value(b, right, "left", after, seq));
}

/* ---- messages ---- */

static struct bed_frame *frame_new(const struct bed *b, const struct coll_msg *msg,
				   const struct payload_vec *body)
{
	size_t len = body ? body->bytes : 0, at;
	struct bed_frame *f;
	struct buf header;

	buf_init(&header, SIZE_MAX);
	bed_must(b, !coll_msg_pack(&header, msg), "a message that cannot be packed");
	f = calloc(1, sizeof(*f) + header.len + len);
	f->header_len = header.len;
	f->len = header.len + len;
	memcpy(f->bytes, header.data, header.len);
	at = header.len;
	for (size_t i = 0; body && i < body->count; i++) {
		const struct payload *p = body->items[i];

		bed_must(b, p->len && p->len <= f->len - at,
			 "a body is not as long as it says");
		memcpy(f->bytes + at, p->data, p->len);
		at += p->len;
	}
	bed_must(b, at == f->len, "a body is shorter than it says");
	buf_free(&header);
	return f;
}

static void op_send(void *arg, uint32_t position, const struct coll_msg *msg,
		    const struct payload_vec *body)
{
	struct bed_node *n = arg;
	struct bed *b = n->bed;
	struct bed_link *link = bed_link(b, n->position, position);
	struct bed_frame *f;

	bed_inside(b, false);
	bed_must(b, b->ready && link && !bed_back(b, link)->detected,
		 "a message to a node that is no neighbour or is lost");
	b->record->faults_sent += msg->type == COLL_MSG_FAULT;
	b->record->sent[msg->type]++;
	f = frame_new(b, msg, body);
	if (link->dead || !b->nodes[position].coll ||
	    (b->o.is_deaf && msg->type == COLL_MSG_FAULT && position == b->o.deaf))
		free(f);
	else
		bed_frame_add(link, f);
	bed_inside(b, true);
}

static void op_flooded(void *arg, struct payload *what)
{
	struct bed_node *n = arg;
	struct bed *b = n->bed;
	size_t len = strlen(n->flooded);

	bed_must(b, b->ready && what->len && what->len <= COLL_FLOOD_BYTES_MAX,
		 "a flood of an impossible length");
	if (b->o.alone)
		return;
	bed_must(b, len + what->len < sizeof(n->flooded), "too many floods for the bed");
	memcpy(n->flooded + len, what->data, what->len);
}

/* ---- results ---- */

static struct payload *op_combine(void *arg, enum coll_kind kind, uint32_t seq,
				  const struct payload_vec *parts, int *error)
{
	struct bed *b = ((struct bed_node *)arg)->bed;
	struct payload *result = NULL;
	struct buf all;

	bed_inside(b, false);
	bed_must(b, b->ready && kind != COLL_RING, "a ring was to be combined");
	*error = -EFBIG;
	buf_init(&all, SIZE_MAX);
	print_prefix(b, &all, kind, seq);
	for (size_t i = 0; i < parts->count; i++)
		buf_append(&all, parts->items[i]->data, parts->items[i]->len);
	if (b->combine_fails != BED_ALL &&
	    (kind != COLL_FENCE || seq != b->combine_fails))
		result = payload_copy(all.data, all.len);
	buf_free(&all);
	bed_inside(b, true);
	return result;
}

void bed_note_reason(struct bed *b, const char *why)
{
	size_t len = strnlen(why, COLL_REASON_MAX);

	bed_must(b, len && len < COLL_REASON_MAX, "a failure without reason");
	memcpy(b->record->reason, why, len + 1);
}

static void end(struct bed *b, uint8_t *outcome, const struct coll_fault *fault)
{
	bed_must(b, *outcome == BED_WAITING, "a collective ended that was not entered");
	*outcome = fault ? BED_FAILED : BED_DONE;
	if (fault)
		bed_note_reason(b, fault->reason);
}

static void op_complete(void *arg, enum coll_kind kind, uint32_t seq,
			struct payload *result, const struct coll_fault *fault)
{
	struct bed_node *n = arg;
	struct bed *b = n->bed;
	uint32_t count, ended = 0;
	const uint32_t *ranks = layout_ranks_at(b->layout, n->position, &count);

	bed_inside(b, false);
	bed_must(b, b->ready && kind != COLL_RING && seq < b->o.seq_max &&
			 !result == !!fault,
		 "a collective ended without result and reason");
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *outcome = bed_outcome_of(b, kind, ranks[i], seq);

		if (*outcome != BED_WAITING)
			continue;
		end(b, outcome, fault);
		ended++;
	}
	bed_must(b, fault ? ended > 0 : ended == count,
		 "success for a rank that has not entered, or failure of none");
	bed_must(b, fault || b->o.alone || result_is_right(b, kind, seq, result),
		 "a rank got a wrong result");
	bed_inside(b, true);
}

static void op_complete_ring(void *arg, uint32_t seq, uint32_t slot,
			     const struct coll_ring_result *result,
			     const struct coll_fault *fault)
{
	struct bed_node *n = arg;
	struct bed *b = n->bed;
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(b->layout, n->position, &count);

	bed_inside(b, false);
	bed_must(b, b->ready && seq < b->o.seq_max && slot < count &&
			 !result == !!fault,
		 "a ring ended without result and reason");
	end(b, bed_outcome_of(b, COLL_RING, ranks[slot], seq), fault);
	bed_must(b, fault || b->o.alone || ring_is_right(b, seq, ranks[slot], result),
		 "a rank got wrong neighbours");
	bed_inside(b, true);
}

const struct coll_ops bed_ops = {
	.send = op_send,
	.combine = op_combine,
	.complete = op_complete,
	.complete_ring = op_complete_ring,
	.complete_subset = bed_complete_subset,
	.fetch_asked = bed_fetch_asked,
	.fetched = bed_fetched,
	.flooded = op_flooded,
};
