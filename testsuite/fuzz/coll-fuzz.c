/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node of libcoll among neighbours that send anything, in any order, again or
 * never. It keeps its contract (coll.h) with the host: sends to neighbours
 * only, ends what was entered once, and when all links are lost has ended all. It
 * asks for no more memory than what comes can fill.
 */
#include "fuzz.h"

#include <errno.h>

#include "libcoll/coll_private.h"
#include "libcoll/subset_private.h"

#define NODES 7
#define RANKS 10
#define SLOTS_MAX RANKS
#define SEQ_MAX 64 /* of a kind that a rank may enter here */
#define ALLOCATION_MAX ((size_t)2 << 20)  /* bytes */

enum outcome { NOT_ENTERED, WAITING, ENDED };

struct node {
	struct layout *layout;
	struct coll *coll;
	uint32_t nslots;
	uint32_t neighbours[NODES];
	uint32_t nneighbours;
	bool lost[NODES];
	bool gone[SLOTS_MAX];
	uint8_t outcome[COLL_KINDS][SEQ_MAX][SLOTS_MAX];
	bool succeeded[COLL_KINDS][SEQ_MAX];
	uint32_t waiting[SLOTS_MAX]; /* in collectives of subsets */
	uint32_t fetches;            /* own ones that have not ended */
	uint64_t asked;              /* the token of the host's last */
	unsigned char key[COLL_KEY_SIZE]; /* of the last one entered */
	bool inside; /* an operation must not be called from outside */
	bool entering;
	uint32_t entering_slot;
	enum coll_kind entering_kind;
	uint32_t *entering_seq;
	bool combine_fails;
};

/* ---- memory ---- */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static bool limited; /* the driver may have what it likes */

void *__wrap_malloc(size_t size)
{
	FUZZ_CHECK(!limited || size <= ALLOCATION_MAX);
	return __real_malloc(size);
}

/* ---- the host ---- */

static void check_fault(const struct coll_fault *fault)
{
	FUZZ_CHECK(memchr(fault->reason, '\0', COLL_REASON_MAX));
	FUZZ_CHECK(fault->reason[0]);
}

static void op_send(void *arg, uint32_t position, const struct coll_msg *msg,
		    const struct payload_vec *body)
{
	struct node *n = arg;
	struct buf b;
	size_t bytes = 0;
	bool neighbour = false;

	FUZZ_CHECK(n->inside && position < NODES && !n->lost[position]);
	for (uint32_t i = 0; i < n->nneighbours; i++)
		neighbour |= n->neighbours[i] == position;
	FUZZ_CHECK(neighbour);
	buf_init(&b, SIZE_MAX);
	FUZZ_CHECK(!coll_msg_pack(&b, msg));
	buf_free(&b);
	for (size_t i = 0; body && i < body->count; i++)
		bytes += body->items[i]->len;
	FUZZ_CHECK(!body || bytes == body->bytes);
}

static struct payload *op_combine(void *arg, enum coll_kind kind, uint32_t seq,
				  const struct payload_vec *parts, int *error)
{
	struct node *n = arg;

	FUZZ_CHECK(n->inside && kind != COLL_RING);
	*error = -EFBIG;
	return n->combine_fails ? NULL : payload_vec_join(parts);
}

static void entered_now(struct node *n, uint32_t seq)
{
	if (n->entering)
		n->outcome[n->entering_kind][seq][n->entering_slot] = WAITING;
	n->entering = false;
}

static void op_complete(void *arg, enum coll_kind kind, uint32_t seq,
			struct payload *result, const struct coll_fault *fault)
{
	struct node *n = arg;
	bool any = false;

	FUZZ_CHECK(n->inside && kind != COLL_RING && seq < SEQ_MAX);
	FUZZ_CHECK(!result == !!fault);
	if (n->entering && kind == n->entering_kind)
		entered_now(n, *n->entering_seq);
	if (fault)
		check_fault(fault);
	for (uint32_t i = 0; i < n->nslots; i++) {
		any |= n->outcome[kind][seq][i] == WAITING;
		if (n->outcome[kind][seq][i] == WAITING)
			n->outcome[kind][seq][i] = ENDED;
		FUZZ_CHECK(fault || n->outcome[kind][seq][i] == ENDED);
	}
	FUZZ_CHECK((any || result) && !n->succeeded[kind][seq]);
	n->succeeded[kind][seq] = result != NULL;
}

static void op_complete_ring(void *arg, uint32_t seq, uint32_t slot,
			     const struct coll_ring_result *result,
			     const struct coll_fault *fault)
{
	struct node *n = arg;

	FUZZ_CHECK(n->inside && seq < SEQ_MAX && slot < n->nslots);
	FUZZ_CHECK(!result == !!fault);
	if (n->entering && n->entering_kind == COLL_RING)
		entered_now(n, *n->entering_seq);
	if (fault)
		check_fault(fault);
	FUZZ_CHECK(n->outcome[COLL_RING][seq][slot] == WAITING);
	n->outcome[COLL_RING][seq][slot] = ENDED;
}

static void op_complete_subset(void *arg, uint32_t slot, uint64_t id,
			       struct payload *result, const char *why)
{
	struct node *n = arg;

	FUZZ_CHECK(n->inside && slot < n->nslots && id == slot);
	FUZZ_CHECK(!result == !!why && n->waiting[slot]);
	n->waiting[slot]--;
}

static bool has_gone(const struct node *n, uint32_t rank)
{
	uint32_t count, slot = 0;
	const uint32_t *ranks = layout_ranks_at(n->layout,
						n->coll->place.range.first, &count);

	while (ranks[slot] != rank)
		slot++;
	return n->gone[slot];
}

/* The host answers questions to a rank that has gone before. */
static int op_fetch_asked(void *arg, uint64_t token,
			  const struct coll_fetch *what)
{
	struct node *n = arg;

	FUZZ_CHECK(n->inside && what->rank < RANKS &&
		   what->key_len <= COLL_FETCH_KEY_MAX);
	if (what->op % 4 == 3 || has_gone(n, what->rank))
		return -ENOTSUP;
	n->asked = token;
	return 0;
}

static void op_fetched(void *arg, uint64_t id, const struct coll_fetched *end)
{
	struct node *n = arg;

	FUZZ_CHECK(n->inside && n->fetches && id == n->coll->place.range.first);
	FUZZ_CHECK(end->status == COLL_FETCH_FOUND || (end->why && !end->value));
	n->fetches--;
}

static void op_flooded(void *arg, struct payload *what)
{
	struct node *n = arg;

	FUZZ_CHECK(n->inside && what->len && what->len <= COLL_FLOOD_BYTES_MAX);
}

static const struct coll_ops ops = {
	.send = op_send,
	.combine = op_combine,
	.complete = op_complete,
	.complete_ring = op_complete_ring,
	.complete_subset = op_complete_subset,
	.fetch_asked = op_fetch_asked,
	.fetched = op_fetched,
	.flooded = op_flooded,
};

/* ---- events ---- */

static int enter(struct node *n, enum coll_kind kind, uint32_t slot,
		 struct payload *value, uint32_t *seq)
{
	if (kind == COLL_RING)
		return coll_enter_ring(n->coll, slot, value ? value->len : 0,
				       value, value, seq);
	return coll_enter(n->coll, kind, slot, value, seq);
}

static void do_enter(struct node *n, struct fuzz_input *in)
{
	enum coll_kind kind = fuzz_u8(in) % COLL_KINDS;
	uint32_t slot = fuzz_u8(in) % n->nslots, seq = 0;
	const uint8_t *bytes;
	size_t len = fuzz_bytes(in, fuzz_u8(in) % 8, &bytes);
	struct payload *value = len ? payload_copy(bytes, len) : NULL;
	uint32_t next = coll_entered(n->coll, kind, slot);
	int rc;

	if (next < SEQ_MAX) {
		n->entering = true;
		n->entering_slot = slot;
		n->entering_kind = kind;
		n->entering_seq = &seq;
		rc = enter(n, kind, slot, value, &seq);
		FUZZ_CHECK(!rc == !n->gone[slot]);
		FUZZ_CHECK(rc || (seq == next &&
				  coll_entered(n->coll, kind, slot) == seq + 1));
		if (!rc)
			entered_now(n, seq);
		n->entering = false;
	}
	payload_unref(value);
}

/* Enters a subset of ranks chosen by the bits of a number, this one among them. */
static void do_enter_subset(struct node *n, struct fuzz_input *in)
{
	uint32_t slot = fuzz_u8(in) % n->nslots;
	uint32_t bits = fuzz_u8(in) | 1u << n->coll->ranks[slot], ranks[RANKS];
	struct coll_subset_name name = { .ranks = ranks };
	int rc;

	for (uint32_t r = 0; r < RANKS; r++)
		if (bits & 1u << r)
			ranks[name.count++] = r;
	n->waiting[slot]++;
	rc = coll_enter_subset(n->coll, slot, &name, NULL, slot);
	FUZZ_CHECK(!rc || rc == -EAGAIN || (rc == -ESHUTDOWN && n->gone[slot]));
	if (rc)
		n->waiting[slot]--;
	if (n->coll->subsets)
		memcpy(n->key, n->coll->subsets->key, COLL_KEY_SIZE);
}

static void do_fetch(struct node *n, struct fuzz_input *in)
{
	const struct coll_fetch what = {
		.op = fuzz_u8(in), .rank = fuzz_u8(in) % (RANKS + 1),
	};
	int rc;

	n->fetches++;
	rc = coll_fetch(n->coll, &what, n->coll->place.range.first);
	FUZZ_CHECK(!rc || rc == -EAGAIN || (rc == -EINVAL && what.rank == RANKS));
	if (rc)
		n->fetches--;
}

static void do_answer(struct node *n, struct fuzz_input *in)
{
	struct coll_fetched end = {
		.status = fuzz_u8(in) % COLL_FETCH_STATUSES, .why = "it is so",
	};

	if (end.status == COLL_FETCH_FOUND)
		end.value = payload_copy("value", fuzz_u8(in) % 5);
	(void)coll_fetch_answer(n->coll, n->asked - fuzz_u8(in) % 4, &end);
	payload_unref(end.value);
}

static void lose(struct node *n, uint32_t position)
{
	n->lost[position] = true; /* nothing more is sent there */
	coll_link_lost(n->coll, position, false, "the link broke");
}

static void draw_subset(struct node *n, struct fuzz_input *in,
			struct coll_subset_msg *m)
{
	memcpy(m->key, n->key, COLL_KEY_SIZE);
	m->key[0] ^= fuzz_u8(in) & 1;
	m->first = (int32_t)(fuzz_u8(in) % 8) - 3;
	m->members = fuzz_u8(in) % 4;
	m->nabove = fuzz_u8(in) % 3;
	for (uint32_t i = 0; i < m->nabove; i++)
		m->above[i] = fuzz_u8(in) % 8;
	m->last = m->nabove && fuzz_u8(in) % 2;
}

/* A header that fits. */
static void draw_header(struct node *n, struct fuzz_input *in,
			struct coll_msg *msg)
{
	memset(msg, 0, sizeof(*msg));
	msg->type = fuzz_u8(in) % COLL_MSG_TYPES;
	msg->kind = fuzz_u8(in) % COLL_KINDS;
	msg->seq = fuzz_u8(in);
	msg->count = fuzz_u8(in);
	msg->total = fuzz_u8(in);
	msg->size = msg->total % 8;
	msg->more = msg->total & 8;
	msg->left_len = fuzz_u8(in) % 4;
	msg->failed = fuzz_u8(in) % 4 == 3;
	for (int kind = 0; kind < COLL_KINDS; kind++)
		msg->fault.from[kind] = fuzz_u8(in) - 1u;
	snprintf(msg->fault.reason, COLL_REASON_MAX, "it is said");
	if (coll_msg_is_subset(msg))
		draw_subset(n, in, &msg->subset);
	msg->fetch = (struct coll_fetch_msg){
		.id = msg->seq % 8, .op = msg->count, .rank = msg->count % 12,
		.status = msg->total % (COLL_FETCH_STATUSES + 1),
	};
}

/* One in its wire form, at the front of the bytes, which are moved behind it. */
static bool read_header(const uint8_t **bytes, size_t *len, struct coll_msg *msg)
{
	struct cursor c;

	cursor_init(&c, *bytes, *len);
	if (coll_msg_unpack(&c, msg))
		return false;
	*len = cursor_left(&c);
	*bytes = c.at;
	return true;
}

/* In the memory that the node has for it, as far as it has, or in a copy. */
static struct payload *make_body(struct node *n, uint32_t from,
				 const struct coll_msg *msg,
				 const uint8_t *bytes, size_t len)
{
	struct payload *body = NULL;

	if (len % 2)
		body = coll_body_room(n->coll, from, msg, len);
	FUZZ_CHECK(!body || body->len == len);
	if (body)
		memcpy(body->data, bytes, len);
	else if (len)
		body = payload_copy(bytes, len);
	return body;
}

/* A header in its wire form, or one that fits, with a body. */
static void do_receive(struct node *n, struct fuzz_input *in, bool fitting)
{
	uint32_t from = fuzz_u8(in) % (NODES + 1);
	const uint8_t *bytes;
	struct payload *body;
	struct coll_msg msg;
	size_t len;
	int rc;

	if (fitting)
		draw_header(n, in, &msg);
	len = fuzz_bytes(in, fuzz_u8(in) % 64, &bytes);
	if (!fitting && !read_header(&bytes, &len, &msg))
		return;
	if ((msg.failed || msg.type == COLL_MSG_FAULT) && !msg.fault.reason[0])
		msg.fault.reason[0] = '?';
	body = make_body(n, from, &msg, bytes, len);
	rc = coll_receive(n->coll, from, &msg, body);
	FUZZ_CHECK(rc == 0 || rc == -EPROTO);
	if (rc && from < NODES && fuzz_u8(in) % 2)
		lose(n, from);
	payload_unref(body);
}

static void look(const struct node *n)
{
	uint32_t ranks[SLOTS_MAX], children[NODES], nranks, nchildren, seq = 0;
	enum coll_kind kind = 0;
	size_t pending = 0;
	bool up;

	while (coll_next_pending(n->coll, &kind, &seq, ranks, &nranks, children,
				 &nchildren, &up)) {
		FUZZ_CHECK(nranks <= n->nslots && nchildren < NODES);
		pending++;
		seq++;
	}
	FUZZ_CHECK(coll_pending(n->coll) - coll_subsets_pending(n->coll) <=
		   pending);
}

static void event(struct node *n, struct fuzz_input *in)
{
	uint32_t slot;

	switch (fuzz_u8(in) % 11) {
	case 0:
	case 1:
		do_enter(n, in);
		break;
	case 2:
		do_receive(n, in, false);
		break;
	case 3:
	case 4:
		do_receive(n, in, true);
		break;
	case 5:
		slot = fuzz_u8(in) % n->nslots;
		n->gone[slot] = true;
		coll_rank_gone(n->coll, slot, COLL_OF_ALL, "it went");
		break;
	case 6:
		lose(n, fuzz_u8(in) % NODES);
		break;
	case 7:
		do_enter_subset(n, in);
		break;
	case 9:
		do_fetch(n, in);
		break;
	case 10:
		do_answer(n, in);
		break;
	default:
		coll_link_up(n->coll, fuzz_u8(in) % (NODES + 1));
	}
	look(n);
}

/* ---- the node ---- */

static void find_neighbours(struct node *n, uint32_t position, uint32_t width)
{
	struct tree_place place = tree_place(NODES, width, position);

	for (uint32_t i = 0; i < place.children; i++)
		n->neighbours[n->nneighbours++] =
			tree_child(&place, i).first;
	if (place.parent != TREE_NONE)
		n->neighbours[n->nneighbours++] = place.parent;
}

static void start(struct node *n, struct fuzz_input *in)
{
	static const uint32_t ranks[RANKS] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	static const uint32_t counts[NODES] = { 2, 1, 2, 1, 2, 1, 1 };
	const uint32_t *lists[NODES], *next = ranks;
	uint32_t position = fuzz_u8(in) % NODES;
	uint32_t width = TREE_WIDTH_MIN + fuzz_u8(in) % 3;
	struct coll_options options = {
		.tree_width = width,
	};

	for (uint32_t i = 0; i < NODES; next += counts[i++])
		lists[i] = next;
	memset(n, 0, sizeof(*n));
	options.piece = fuzz_u8(in);
	n->combine_fails = options.piece % 4 == 3;
	FUZZ_CHECK(!layout_create(&n->layout, NODES, RANKS, counts, lists));
	FUZZ_CHECK(!coll_create(&n->coll, n->layout, position, &options, &ops,
				n));
	layout_ranks_at(n->layout, position, &n->nslots);
	find_neighbours(n, position, width);
	n->inside = true;
}

/* Without links, and with own ranks that enter nothing more, all has ended. */
static void end(struct node *n)
{
	for (uint32_t i = 0; i < NODES; i++)
		lose(n, i);
	for (uint32_t i = 0; i < n->nslots; i++) {
		n->gone[i] = true;
		coll_rank_gone(n->coll, i, COLL_OF_ALL, "it went");
	}
	FUZZ_CHECK(coll_pending(n->coll) == 0 && !n->coll->subsets);
	FUZZ_CHECK(!n->fetches && !n->coll->fetches);
	for (int kind = 0; kind < COLL_KINDS; kind++)
		for (uint32_t seq = 0; seq < SEQ_MAX; seq++)
			for (uint32_t i = 0; i < n->nslots; i++)
				FUZZ_CHECK(n->outcome[kind][seq][i] != WAITING);
	n->inside = false;
	coll_destroy(n->coll);
	layout_destroy(n->layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	static struct node n;

	limited = true;
	start(&n, &in);
	while (in.left)
		event(&n, &in);
	end(&n);
	limited = false;
	return 0;
}
