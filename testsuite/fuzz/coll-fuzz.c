/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node of libcoll among neighbours that send anything, in any order, again or
 * never. It keeps its contract (coll.h) with the host: sends to neighbours
 * only, ends what was entered once, and when all links are lost has ended all. It
 * asks for no more memory than what comes can fill.
 */
#include "fuzz.h"

#include <errno.h>

#include "bed/coll.h"
#include "libcoll/coll_private.h"
#include "libcoll/subset_private.h"

#define NODES 7
#define RANKS 10
#define SEQ_MAX 64 /* of a kind that a rank may enter here */
#define FETCHES_MAX 2048
#define ALLOCATION_MAX ((size_t)2 << 20)  /* bytes */

struct node {
	struct bed *bed;
	struct coll *coll;
	uint32_t position, nslots;
	uint32_t group_of[1 << RANKS]; /* 1 + the group of the ranks whose bits are set;
	                                  0: there is none */
	unsigned char key[COLL_KEY_SIZE]; /* of the last one entered */
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

/* ---- events ---- */

static void do_enter(struct node *n, struct fuzz_input *in)
{
	enum coll_kind kind = fuzz_u8(in) % COLL_KINDS;
	uint32_t rank = n->coll->ranks[fuzz_u8(in) % n->nslots];
	const uint8_t *bytes;
	size_t len = fuzz_bytes(in, fuzz_u8(in) % 8, &bytes);
	struct payload *value = len ? payload_copy(bytes, len) : NULL;

	if (bed_entered(n->bed, kind, rank) < SEQ_MAX)
		FUZZ_CHECK(!bed_enter_with(n->bed, kind, rank, len, value, value) ==
			   !n->bed->gone[rank]);
	payload_unref(value);
}

/* Enters a subset of ranks chosen by the bits of a number, this one among them. */
static void do_enter_subset(struct node *n, struct fuzz_input *in)
{
	uint32_t rank = n->coll->ranks[fuzz_u8(in) % n->nslots];
	uint32_t bits = fuzz_u8(in) | 1u << rank, ranks[RANKS], count = 0, i;
	const struct bed_group *g;
	int rc;

	for (uint32_t r = 0; r < RANKS; r++)
		if (bits & 1u << r)
			ranks[count++] = r;
	if (!n->group_of[bits])
		n->group_of[bits] = 1 + bed_group(n->bed, ranks, count);
	g = &n->bed->groups[n->group_of[bits] - 1];
	i = bed_group_index(g, rank);
	if (g->entered[i] == BED_GROUP_SEQ_MAX)
		return;
	rc = bed_enter_group(n->bed, n->group_of[bits] - 1, i);
	FUZZ_CHECK(!rc || rc == -EAGAIN || (rc == -ESHUTDOWN && n->bed->gone[rank]));
	if (n->coll->subsets)
		memcpy(n->key, n->coll->subsets->key, COLL_KEY_SIZE);
}

/* The host answers questions to a rank that has gone before. */
static bool refuses(const struct bed *b, const struct coll_fetch *what)
{
	return what->op % 4 == 3 || b->gone[what->rank];
}

static void do_fetch(struct node *n, struct fuzz_input *in)
{
	const struct coll_fetch what = {
		.op = fuzz_u8(in), .rank = fuzz_u8(in) % (RANKS + 1),
	};
	int rc;

	if (n->bed->nfetches == FETCHES_MAX)
		return;
	rc = bed_fetch_with(n->bed, n->bed->nfetches, n->position, &what);
	FUZZ_CHECK(!rc || rc == -EAGAIN || (rc == -EINVAL && what.rank == RANKS));
	n->bed->nfetches += !rc;
}

static void do_answer(struct node *n, struct fuzz_input *in)
{
	struct coll_fetched end = {
		.status = fuzz_u8(in) % COLL_FETCH_STATUSES, .why = "it is so",
	};

	if (end.status == COLL_FETCH_FOUND)
		end.value = payload_copy("value", fuzz_u8(in) % 5);
	(void)coll_fetch_answer(n->coll, n->bed->asked[0].token - fuzz_u8(in) % 4, &end);
	payload_unref(end.value);
}

static void lose(struct node *n, uint32_t position)
{
	struct bed_link *link = bed_link(n->bed, position, n->position);

	if (link)
		bed_detect(n->bed, link);
	else
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
	uint32_t ranks[RANKS], children[NODES], nranks, nchildren, seq = 0;
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

/* Keep the last question to the host only. */
static void keep_last(struct bed *b)
{
	if (b->nasked > 1)
		b->asked[0] = b->asked[1];
	b->nasked = b->nasked ? 1 : 0;
}

static void event(struct node *n, struct fuzz_input *in)
{
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
		bed_rank_gone(n->bed, n->coll->ranks[fuzz_u8(in) % n->nslots]);
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
	keep_last(n->bed);
	look(n);
}

/* ---- the node ---- */

static void broken(const char *what)
{
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void start(struct node *n, struct fuzz_input *in)
{
	uint32_t position = fuzz_u8(in) % NODES;
	uint32_t width = TREE_WIDTH_MIN + fuzz_u8(in) % 3, piece = fuzz_u8(in);

	memset(n, 0, sizeof(*n));
	n->bed = bed_new(&(struct bed_options){
		.nodes = NODES, .ranks = RANKS, .width = width, .piece = piece,
		.seq_max = SEQ_MAX, .fetches_max = FETCHES_MAX,
		.groups_max = 1 << RANKS, .varied = true, .alone = true,
		.position = position, .broken = broken,
	});
	n->bed->refuses = refuses;
	if (piece % 4 == 3)
		n->bed->combine_fails = BED_ALL;
	n->position = position;
	n->coll = n->bed->nodes[position].coll;
	n->nslots = n->coll->nslots;
}

/* Without links, and with own ranks that enter nothing more, all has ended. */
static void end(struct node *n)
{
	for (uint32_t i = 0; i < NODES; i++)
		lose(n, i);
	for (uint32_t i = 0; i < n->nslots; i++)
		bed_rank_gone(n->bed, n->coll->ranks[i]);
	bed_check_settled(n->bed);
	bed_free(n->bed);
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
