/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A journal that somebody else has written, as bytes or as records of any content: a head
 * goes on with it, and in what it writes of it no task comes to be that was not there.
 */
#include "../unit/dvm/requests.h"
#include "../unit/dvm/sealed.h"
#include "fuzz.h"

#include "dvm/core/head.h"
#include "dvm/json/dvm_json.h"
#include "dvm/core/history.h"

#define NODES 2
#define CORES 4
#define JOURNAL_MAX ((size_t)1 << 24)

struct bed {
	struct dvm_head *head;
	struct buf written;
};

static void node_send(void *arg, uint32_t node, const void *data, size_t len)
{
}

static void node_break(void *arg, uint32_t node, const char *why)
{
	FUZZ_CHECK(!"a node is broken off");
}

static void client_send(void *arg, uint32_t client, const char *line, size_t len)
{
}

static int record(void *arg, const void *data, size_t len, enum durable_wait wait)
{
	struct bed *b = arg;

	return append_sealed(&b->written, data, len);
}

static void end(void *arg)
{
}

static void open_bed(struct bed *b)
{
	static const struct dvm_head_ops ops = {
		.node_send = node_send, .node_break = node_break,
		.format = &dvm_json, .client_send = client_send, .record = record, .end = end,
	};
	const struct dvm_head_options options = {
		.name = "fuzz", .build = "fuzz", .nodes = NODES,
		.queue = { .window = 10, .patience_ms = 1000 },
		.grace_ms = 100, .max_waiting = 100, .fast = true,
	};

	FUZZ_CHECK(!dvm_head_create(&b->head, &options, &ops, b, NULL));
	buf_init(&b->written, JOURNAL_MAX);
	for (uint32_t i = 0; i < NODES; i++)
		FUZZ_CHECK(!tell_registered(b->head, i, CORES, (struct dvm_time){ 0 }));
}

static struct dvm_bytes some_bytes(struct fuzz_input *in)
{
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u16(in), &at);

	return (struct dvm_bytes){ at, len };
}

static void make_record(struct fuzz_input *in, struct journal_record *r)
{
	*r = (struct journal_record){ .type = 1 + fuzz_u8(in) % (JOURNAL_TYPES - 1) };
	switch (r->type) {
	case JOURNAL_COUNTS:
		r->counts = (struct journal_counts){ fuzz_u8(in), fuzz_u8(in),
			fuzz_u8(in), fuzz_u32(in), fuzz_u8(in), fuzz_u8(in) };
		break;
	case JOURNAL_WAITED:
		r->waited = (struct journal_waited){ fuzz_u8(in), fuzz_u8(in), fuzz_u8(in) };
		break;
	case JOURNAL_PROFILE:
		r->profile.number = fuzz_u8(in);
		r->profile.id = some_bytes(in);
		r->profile.cwd = some_bytes(in);
		r->profile.env = some_bytes(in);
		break;
	case JOURNAL_SUBMIT:
		r->submit.task = fuzz_u8(in);
		r->submit.profile = fuzz_u8(in);
		r->submit.tied = fuzz_u8(in) & 1;
		r->submit.json = some_bytes(in);
		break;
	case JOURNAL_START:
		r->start = (struct journal_start){ fuzz_u8(in), fuzz_u32(in),
			fuzz_u32(in), fuzz_u8(in), fuzz_u8(in), fuzz_u8(in) };
		break;
	case JOURNAL_NODES:
		r->nodes = (struct journal_nodes){ fuzz_u8(in), fuzz_u8(in) & 1,
			fuzz_u8(in), fuzz_u8(in), false, fuzz_u8(in) & 1, fuzz_u8(in) & 1, fuzz_u8(in),
			fuzz_u8(in) };
		break;
	case JOURNAL_CANCEL:
		r->cancelled = fuzz_u8(in);
		break;
	default:
		r->end.task = fuzz_u8(in);
		r->end.status = (int32_t)fuzz_u32(in);
		r->end.cancelled = fuzz_u8(in) & 1;
		r->end.why = some_bytes(in);
		r->end.node = some_bytes(in);
		r->end.told_ns = fuzz_u8(in);
	}
}

/*
 * A journal of either version, as bytes or record by record; and something of it is
 * damaged.
 */
static void make_journal(struct fuzz_input *in, struct buf *out)
{
	uint8_t how = fuzz_u8(in);
	bool raw = how & 1, first = how & 2, damaged = how & 4;
	struct journal_record r;
	const uint8_t *at;
	size_t len;

	buf_init(out, JOURNAL_MAX);
	FUZZ_CHECK(!(first ? put_header_1(out) : journal_put_header(out)));
	if (raw) {
		len = fuzz_bytes(in, in->left, &at);
		FUZZ_CHECK(!buf_append(out, at, len));
	}
	while (in->left) {
		make_record(in, &r);
		FUZZ_CHECK(!(first ? put_1(out, &r) : put_sealed(out, &r)));
	}
	if (damaged && out->len > JOURNAL_HEADER_SIZE)
		out->data[JOURNAL_HEADER_SIZE +
			  out->len / 3 % (out->len - JOURNAL_HEADER_SIZE)] ^= 1;
}

/* Every task is in one state. */
static void report(const struct buf *journal)
{
	void *copy = fuzz_copy(journal->data, journal->len, 0);
	struct journal_reader in;
	struct history_figures f;
	struct history h;
	uint32_t version;
	size_t all = 0;

	FUZZ_CHECK(!journal_open(&in, copy, journal->len, &version));
	FUZZ_CHECK(!history_read(&h, &in));
	FUZZ_CHECK(!history_count(&h, 1, &f));
	for (int i = 0; i < HISTORY_STATES; i++)
		all += f.states[i];
	FUZZ_CHECK(all == h.ntasks);
	FUZZ_CHECK(f.there >= 0 && f.setup.median <= f.setup.p99);
	history_free(&h);
	free(copy);
}

/* A head goes on with it; what is left of it is in b->written. */
static struct dvm_resumed go_on(struct bed *b, const struct buf *journal)
{
	void *copy = fuzz_copy(journal->data, journal->len, 0);
	struct journal_record r = { .type = JOURNAL_COUNTS };
	struct journal_reader in;
	struct dvm_resumed found;
	uint32_t version;

	open_bed(b);
	FUZZ_CHECK(!journal_open(&in, copy, journal->len, &version));
	FUZZ_CHECK(!dvm_head_resume(b->head, &in, false, &found, (struct dvm_time){ 0 }));
	FUZZ_CHECK(in.cut <= journal->len && in.damaged <= in.cut);
	FUZZ_CHECK(!journal_put_header(&b->written));
	FUZZ_CHECK(!journal_open(&in, copy, journal->len, &version));
	while (journal_next(&in, &r))
		if (dvm_head_knows(b->head, &r))
			FUZZ_CHECK(!put_sealed(&b->written, &r));
	r = (struct journal_record){ .type = JOURNAL_COUNTS };
	dvm_head_forgotten(b->head, &r.counts);
	FUZZ_CHECK(!put_sealed(&b->written, &r));
	dvm_head_turn(b->head, (struct dvm_time){ 0 });
	free(copy);
	return found;
}

static void close_bed(struct bed *b)
{
	dvm_head_destroy(b->head);
	buf_free(&b->written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct dvm_resumed second, third;
	struct buf journal;
	struct bed a, b, c;

	make_journal(&in, &journal);
	report(&journal);
	(void)go_on(&a, &journal);
	second = go_on(&b, &a.written); /* the first that a head has written */
	third = go_on(&c, &b.written);
	FUZZ_CHECK(third.queued <= second.queued);
	FUZZ_CHECK(third.ended >= second.ended);
	close_bed(&a);
	close_bed(&b);
	close_bed(&c);
	buf_free(&journal);
	return 0;
}
