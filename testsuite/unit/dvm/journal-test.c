/* SPDX-License-Identifier: BSD-3-Clause */
/* A journal as bytes: what is whole is read back, whatever has become of the rest. */
#include "unit.h"

#include <errno.h>

#include "sealed.h"
#include "wrap-memory.h"

#define RECORDS 8

static bool refuse;

static bool is_refused(void)
{
	return refuse;
}

static struct dvm_bytes bytes(const char *text)
{
	return (struct dvm_bytes){ text, strlen(text) };
}

static void make_records(struct journal_record out[RECORDS])
{
	out[0] = (struct journal_record){ .type = JOURNAL_COUNTS,
		.counts = { 7, 6, 2, 5, 4, 1 } };
	out[1] = (struct journal_record){ .type = JOURNAL_PROFILE,
		.profile = { 3, bytes("id"), bytes("/tmp"), bytes("A=B") } };
	out[2] = (struct journal_record){ .type = JOURNAL_SUBMIT,
		.submit = { 7, 1000, 3, true, 6, bytes("{\"argv\":[\"true\"]}") } };
	out[3] = (struct journal_record){ .type = JOURNAL_START,
		.start = { 7, 2, 1, 2000, 12, 3 } };
	out[4] = (struct journal_record){ .type = JOURNAL_CANCEL, .cancelled = 7 };
	out[5] = (struct journal_record){ .type = JOURNAL_END,
		.end = { .task = 7, .instance = 2, .status = 9, .rank = 1,
			 .too_long = true, .started_ns = 2001, .ended_ns = 3000,
			 .user_us = 4, .system_us = 5, .peak_kib = 6,
			 .why = bytes("because"), .node = bytes("n2"), .told_ns = 3001 } };
	out[6] = (struct journal_record){ .type = JOURNAL_NODES,
		.nodes = { 900, true, 2, UINT64_C(1) << 33, true, false, true, 4, 800 } };
	out[7] = (struct journal_record){ .type = JOURNAL_WAITED, .waited = { 7, 1, 1 } };
}

/* A journal with all of them; ends[i] is where record i - 1 ends. */
static void make_journal(struct buf *b, size_t ends[RECORDS + 1])
{
	struct journal_record records[RECORDS];

	make_records(records);
	buf_init(b, 1 << 20);
	assert_int_equal(journal_put_header(b), 0);
	for (size_t i = 0; i < RECORDS; i++) {
		ends[i] = b->len;
		assert_int_equal(put_sealed(b, &records[i]), 0);
	}
	ends[RECORDS] = b->len;
}

static void open_ok(struct journal_reader *j, const void *data, size_t len)
{
	uint32_t version;

	assert_int_equal(journal_open(j, data, len, &version), 0);
	assert_int_equal(version, JOURNAL_VERSION);
}

/* True: the record is as it was written as number i. */
static void assert_is(const struct journal_record *r, size_t i)
{
	struct journal_record records[RECORDS];
	struct buf a, b;

	make_records(records);
	buf_init(&a, 4096);
	buf_init(&b, 4096);
	assert_int_equal(journal_put(&a, r), 0);
	assert_int_equal(journal_put(&b, &records[i]), 0);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	buf_free(&a);
	buf_free(&b);
}

TEST(records_are_read_as_written)
{
	size_t ends[RECORDS + 1];
	struct journal_reader j;
	struct journal_record r;
	struct buf b;

	make_journal(&b, ends);
	open_ok(&j, b.data, b.len);
	for (size_t i = 0; i < RECORDS; i++) {
		assert_true(journal_next(&j, &r));
		assert_int_equal(j.begin, ends[i]);
		assert_is(&r, i);
	}
	assert_false(journal_next(&j, &r));
	assert_int_equal(j.cut, b.len);
	assert_int_equal(j.damaged, 0);
	assert_int_equal(j.gaps, 0);
	buf_free(&b);
}

TEST(records_of_version_1_are_read)
{
	struct journal_record records[RECORDS], r;
	struct journal_reader j;
	uint32_t version;
	struct buf b;

	make_records(records);
	buf_init(&b, 1 << 20);
	assert_int_equal(put_header_1(&b), 0);
	for (size_t i = 0; i < RECORDS; i++)
		assert_int_equal(put_1(&b, &records[i]), 0);
	assert_int_equal(journal_open(&j, b.data, b.len, &version), 0);
	assert_int_equal(version, 1);
	for (size_t i = 0; i < RECORDS; i++) {
		assert_true(journal_next(&j, &r));
		assert_is(&r, i);
	}
	assert_false(journal_next(&j, &r));
	assert_int_equal(j.cut, b.len);
	assert_int_equal(j.damaged + j.gaps, 0);
	buf_free(&b);
}

/* Bytes at the end of a record that version 2 did not have. */
static size_t new_bytes(const struct journal_record *r)
{
	switch (r->type) {
	case JOURNAL_START: return 4;
	case JOURNAL_END: return r->end.output ? 8 : 9;
	case JOURNAL_NODES: return 16;
	default: return 0;
	}
}

/* A record at the end of a journal, as version 2 had it. `sum`: of the one before it. */
static void put_2(struct buf *journal, const struct journal_record *r, uint32_t *sum)
{
	size_t at = journal->len, len;
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(journal_put(journal, r), 0);
	journal->len -= new_bytes(r);
	len = journal->len - at;
	assert_int_equal(pack_u32(&b, (uint32_t)len - 16), 0);
	assert_int_equal(pack_u32(&b, *sum), 0);
	memcpy(journal->data + at + 8, b.data, 8);
	*sum = hash_seeded(at << 8 | 2, journal->data + at + 8, len - 8);
	buf_clear(&b);
	assert_int_equal(pack_u32(&b, *sum), 0);
	memcpy(journal->data + at + 4, b.data, 4);
	buf_free(&b);
}

static void read_version_2(enum journal_output output)
{
	struct journal_record records[RECORDS], r;
	uint32_t version, sum = 0x31564a44;
	struct journal_reader j;
	struct buf b;

	make_records(records);
	records[5].end.output = output;
	buf_init(&b, 1 << 20);
	assert_int_equal(journal_put_header(&b), 0);
	b.data[b.len - 4] = 2;
	for (size_t i = 0; i < RECORDS; i++)
		put_2(&b, &records[i], &sum);
	assert_int_equal(journal_open(&j, b.data, b.len, &version), 0);
	assert_int_equal(version, 2);
	for (size_t i = 0; i < RECORDS; i++) {
		assert_true(journal_next(&j, &r));
		assert_int_equal(r.type, records[i].type);
		if (r.type == JOURNAL_START)
			assert_true(r.start.slots == 12 && !r.start.gpus);
		if (r.type == JOURNAL_END)
			assert_true(r.end.ended_ns == 3000 && !r.end.told_ns &&
				    r.end.output == output);
		if (r.type == JOURNAL_NODES)
			assert_true(r.nodes.stay && !r.nodes.gpus && !r.nodes.from_ns);
	}
	assert_false(journal_next(&j, &r));
	assert_int_equal(j.cut, b.len);
	assert_int_equal(j.damaged + j.gaps, 0);
	buf_free(&b);
}

TEST(records_of_version_2_are_read)
{
	read_version_2(JOURNAL_NO_OUTPUT);
	read_version_2(JOURNAL_OUTPUT_LOST);
}

/* The records behind it are moved to its place: none of them is damaged. */
TEST(a_missing_record_is_named_and_no_other_is_missed)
{
	size_t ends[RECORDS + 1];
	struct journal_reader j;
	struct journal_record r;
	struct buf b;

	for (size_t hit = 0; hit + 1 < RECORDS; hit++) {
		struct journal_chain chain;
		struct journal_record records[RECORDS];
		struct buf rest;

		make_journal(&b, ends);
		make_records(records);
		open_ok(&j, b.data, ends[hit + 1]);
		while (journal_next(&j, &r))
			;
		chain = (struct journal_chain){ ends[hit], j.sum };
		b.len = ends[hit];
		buf_init(&rest, 1 << 20);
		for (size_t i = hit + 1; i < RECORDS; i++)
			assert_int_equal(journal_put(&rest, &records[i]), 0);
		journal_seal(&chain, rest.data, rest.len);
		assert_int_equal(buf_append(&b, rest.data, rest.len), 0);
		open_ok(&j, b.data, b.len);
		for (size_t i = 0; i < RECORDS; i++) {
			if (i == hit)
				continue;
			assert_true(journal_next(&j, &r));
			assert_is(&r, i);
		}
		assert_false(journal_next(&j, &r));
		assert_int_equal(j.damaged, 0);
		assert_int_equal(j.gaps, 1);
		assert_int_equal(j.gap_at, ends[hit]);
		buf_free(&rest);
		buf_free(&b);
	}
}

/* As a disk may put a block where another one is to be. */
TEST(a_record_in_the_place_of_another_is_damage)
{
	struct journal_record r = { .type = JOURNAL_CANCEL, .cancelled = 1 };
	struct journal_reader j;
	size_t len, found = 0;
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(journal_put_header(&b), 0);
	for (r.cancelled = 1; r.cancelled <= 4; r.cancelled++)
		assert_int_equal(put_sealed(&b, &r), 0);
	len = (b.len - JOURNAL_HEADER_SIZE) / 4;
	memcpy(b.data + JOURNAL_HEADER_SIZE + len, b.data + JOURNAL_HEADER_SIZE, len);
	open_ok(&j, b.data, b.len);
	while (journal_next(&j, &r))
		found = found * 10 + r.cancelled;
	assert_int_equal(found, 134);
	assert_int_equal(j.damaged, len);
	buf_free(&b);
}

TEST(a_journal_cut_anywhere_ends_with_its_last_whole_record)
{
	size_t ends[RECORDS + 1], n;
	struct journal_reader j;
	struct journal_record r;
	struct buf b;

	make_journal(&b, ends);
	for (size_t len = JOURNAL_HEADER_SIZE; len <= b.len; len++) {
		char *copy = malloc(len); /* a byte too far is an error of its own */

		memcpy(copy, b.data, len);
		open_ok(&j, copy, len);
		for (n = 0; journal_next(&j, &r); n++)
			assert_is(&r, n);
		assert_int_equal(j.cut, ends[n]);
		assert_true(n == RECORDS || ends[n + 1] > len);
		assert_int_equal(j.damaged, 0);
		free(copy);
	}
	buf_free(&b);
}

TEST(a_damaged_record_is_passed_over_and_no_other)
{
	size_t ends[RECORDS + 1];
	struct journal_reader j;
	struct journal_record r;
	struct buf b;

	make_journal(&b, ends);
	for (size_t bit = 8 * JOURNAL_HEADER_SIZE; bit < 8 * b.len; bit++) {
		size_t hit = 0;

		while (ends[hit + 1] <= bit / 8)
			hit++;
		b.data[bit / 8] ^= (char)(1 << bit % 8);
		open_ok(&j, b.data, b.len);
		for (size_t i = 0; i < RECORDS; i++) {
			if (i == hit)
				continue;
			assert_true(journal_next(&j, &r));
			assert_is(&r, i);
		}
		assert_false(journal_next(&j, &r));
		if (hit == RECORDS - 1) { /* as if it had been cut */
			assert_int_equal(j.cut, ends[hit]);
			assert_int_equal(j.damaged, 0);
		} else {
			assert_int_equal(j.damaged, ends[hit + 1] - ends[hit]);
			assert_int_equal(j.damaged_at, ends[hit]);
		}
		b.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	buf_free(&b);
}

TEST(files_that_are_no_journal_are_rejected)
{
	size_t ends[RECORDS + 1];
	struct journal_reader j;
	uint32_t version;
	struct buf b;

	make_journal(&b, ends);
	for (size_t len = 0; len < JOURNAL_HEADER_SIZE; len++)
		assert_int_equal(journal_open(&j, b.data, len, &version), -EBADMSG);
	b.data[JOURNAL_HEADER_SIZE - 4]++;
	assert_int_equal(journal_open(&j, b.data, b.len, &version),
			 -EPROTONOSUPPORT);
	assert_int_equal(version, JOURNAL_VERSION + 1);
	b.data[0]++;
	assert_int_equal(journal_open(&j, b.data, b.len, &version), -EBADMSG);
	buf_free(&b);
}

TEST(a_record_that_is_too_long_changes_nothing)
{
	char *text = calloc(1, JOURNAL_RECORD_MAX + 1);
	struct journal_record r = { .type = JOURNAL_SUBMIT,
		.submit = { .json = { text, JOURNAL_RECORD_MAX + 1 } } };
	struct buf b;

	buf_init(&b, 2 * JOURNAL_RECORD_MAX);
	assert_int_equal(journal_put(&b, &r), -EMSGSIZE);
	assert_int_equal(b.len, 0);
	buf_free(&b);
	buf_init(&b, 100);
	assert_int_equal(journal_put(&b, &r), -ENOBUFS);
	assert_int_equal(b.len, 0);
	buf_free(&b);
	free(text);
}

TEST(without_memory_nothing_is_written)
{
	struct journal_record records[RECORDS];
	struct buf b;

	make_records(records);
	for (size_t i = 0; i < RECORDS; i++) {
		buf_init(&b, 4096);
		refuse = true;
		assert_int_equal(journal_put(&b, &records[i]), -ENOMEM);
		refuse = false;
		assert_int_equal(b.len, 0);
		buf_free(&b);
	}
}
