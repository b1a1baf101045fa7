/* SPDX-License-Identifier: BSD-3-Clause */
/* The sections of the wire reference that the DVM writes: its messages and journal. */
#include "unit.h"

#include <stdio.h>

#include "dvm/core/dvm_places.h"
#include "dvm/core/journal.h"
#include "wire-lines.h"

#define BYTES(text) { text, sizeof(text) - 1 }
#define TEXTS(text) { text, sizeof(text) } /* with the last one's NUL */
#define TASK 0x1020304050607
#define TRY 9
#define ABOUT { TASK, TRY, 4, 5 }
#define LIMITS { 0x10012, 1 << DVM_LIMIT_NOFILE, { [DVM_LIMIT_NOFILE] = 1024 } }
#define CORES { { 0x81, 0, 1ull << 63 } }

/* Nodes 7 and 8 have 4 ranks each, and node 1 has 4. */
static const char runs[] = "\7\0\0\0\2\0\0\0\4\0\0\0"
			   "\1\0\0\0\1\0\0\0\4\0\0\0";
/* The names n1 to n3. */
static const char names[] = "\3\0\0\0\2\0\0\0n1";

static const struct dvm_msg messages[] = {
	{ .type = DVM_REGISTER,
	  .reg = { 1, { 2, 3, 1ull << 40 }, 4711, BYTES("n1"), BYTES("build") } },
	{ .type = DVM_PROFILE, .profile = { 5, TEXTS("/tmp"), TEXTS("A=1\0B=2"), LIMITS } },
	{ .type = DVM_PROFILE,
	  .profile = { 5, TEXTS("/tmp"), TEXTS("A=1"), LIMITS, TEXTS("/tmp/outputs"),
		       BYTES("input") } },
	{ .type = DVM_FORGET, .profile = { .number = 5 } },
	{ .type = DVM_LAUNCH,
	  .launch = { .task = TASK, .instance = TRY, .profile = 5, .ranks = 12,
		      .nodes = 3, .node = 1, .first_rank = 4, .ranks_here = 6,
		      .cores = CORES, .gpus = 1ull << 33, .limit_s = 7,
		      .grace_ms = 8, .universe = 64, .pmi = true,
		      .output = DVM_OUTPUT_FILE, .argv = TEXTS("a.out\0-v"),
		      .append = true, .path = TEXTS("out"), .error = TEXTS("err"),
		      .runs = { runs, sizeof(runs) - 1 }, .neighbours = BYTES("neighbours"),
		      .spawned = BYTES("spawned"), .input = BYTES("input"),
		      .line = 77 } },
	{ .type = DVM_LAUNCH,
	  .launch = { .task = 1, .ranks = 1, .nodes = 1, .ranks_here = 1,
		      .keep = true, .preloaded = true, .argv = TEXTS("true") } },
	{ .type = DVM_LAUNCH,
	  .launch = { .task = 1, .ranks = 1, .nodes = 1, .ranks_here = 1,
		      .output = DVM_OUTPUT_FORWARD, .window = 1 << 18,
		      .argv = TEXTS("true") } },
	{ .type = DVM_SIGNAL, .signal = { TASK, TRY, 15 } },
	{ .type = DVM_LEAVE },
	{ .type = DVM_STARTED, .started = { TASK, TRY } },
	{ .type = DVM_FAILING, .started = { TASK, TRY } },
	{ .type = DVM_OUTPUT, .output = { TASK, 3, 2, BYTES("line\n") } },
	{ .type = DVM_ENDED,
	  .ended = { TASK, TRY, -2, 3, true, false, false, DVM_LACK_IDLE, true, 4, 5, 6,
		     7, 8,
		     BYTES("why"), BYTES("out"), BYTES("err") } },
	{ .type = DVM_ENDED,
	  .ended = { TASK, TRY, .files = TEXTS("7.out\0" "7.err"), .unkept = BYTES("full") } },
	{ .type = DVM_ENDED, .ended = { TASK, TRY, .too_long = true } },
	{ .type = DVM_ENDED, .ended = { TASK, TRY, .told = true } },
	{ .type = DVM_EXEC, .exec = { 2, 3, 4, true, BYTES("launch") } },
	{ .type = DVM_GIVE_UP, .give_up = 2 },
	{ .type = DVM_KILL, .kill = { 2, 15 } },
	{ .type = DVM_PROCESSES, .processes = { 2, -11, BYTES("12345678") } },
	{ .type = DVM_FAILED, .failed = { TASK, TRY, 256, 3, true, BYTES("why") } },
	{ .type = DVM_ASK, .ask = ABOUT },
	{ .type = DVM_TOLD, .told = { ABOUT, DVM_TOLD_PMI, false, 0, BYTES("status") } },
	{ .type = DVM_TOLD, .told = { ABOUT, DVM_TOLD_RANKS, true, 9, BYTES("ranks") } },
	{ .type = DVM_EXITED, .exited = { 2, 3, -4, true, 5, 6, 7, BYTES("why") } },
	{ .type = DVM_NAMES, .names = { TASK, TRY, BYTES("names") } },
	{ .type = DVM_SPAWN,
	  .spawn = { TASK, TRY, 6, 2, TEXTS("a.out"), BYTES("about") } },
	{ .type = DVM_SPAWNED, .spawned = { TASK, TRY, 6, 8, 1, BYTES("why") } },
	{ .type = DVM_READY, .ready = { TASK, TRY, BYTES("why") } },
	{ .type = DVM_ADOPT },
	{ .type = DVM_HELD, .held = { TASK, TRY, 3, 1, 4, 6, CORES, 2, 1ull << 60 } },
	{ .type = DVM_BULK },
	{ .type = DVM_CREDIT, .credit = { TASK, TRY, 1 << 17 } },
	{ .type = DVM_RESOURCES, .resources = { 2, 3, 1ull << 40 } },
	{ .type = DVM_HEAD_LINK },
	{ .type = DVM_NODES, .nodes = { 4, { names, sizeof(names) - 1 } } },
	{ .type = DVM_DONE, .started = { TASK, TRY } },
	{ .type = DVM_STOP, .stop = { true } },
	{ .type = DVM_LEASE, .lease = { 1ull << 50 } },
	{ .type = DVM_GONE },
	{ .type = DVM_CALL, .call = { 77 } },
};

#define MESSAGES (sizeof(messages) / sizeof(messages[0]))

/* A message that is read is written as it was. */
static void assert_message_returns(const struct buf *bytes)
{
	struct dvm_msg m;
	struct cursor c;
	struct buf again;

	buf_init(&again, LINE_MAX_BYTES);
	cursor_init(&c, bytes->data, bytes->len);
	assert_int_equal(dvm_msg_unpack(&c, &m), 0);
	assert_true(cursor_done(&c));
	assert_int_equal(dvm_msg_pack(&again, &m), 0);
	assert_int_equal(again.len, bytes->len);
	assert_memory_equal(again.data, bytes->data, bytes->len);
	buf_free(&again);
}

static void message_lines(struct buf *out)
{
	bool seen[DVM_MSG_TYPES] = { true };
	struct buf b;
	char name[40];

	buf_init(&b, LINE_MAX_BYTES);
	for (size_t i = 0; i < MESSAGES; i++) {
		seen[messages[i].type] = true;
		assert_int_equal(dvm_msg_pack(&b, &messages[i]), 0);
		assert_message_returns(&b);
		snprintf(name, sizeof(name), "dvm-%zu", i);
		buf_line(out, name, &b);
	}
	for (int i = 0; i < DVM_MSG_TYPES; i++)
		assert_true(seen[i]); /* a new one belongs into the table */
	buf_free(&b);
}

/* Lists within messages. */
static void list_lines(struct buf *out)
{
	const struct dvm_neighbour neighbour = { 1, { "0123456789abcde", 4711 } };
	const struct dvm_rank rank = { 3, 1ull << 32, 'R', 5 };
	struct buf b;

	buf_init(&b, LINE_MAX_BYTES);
	assert_int_equal(dvm_neighbour_pack(&b, &neighbour), 0);
	buf_line(out, "neighbour", &b);
	assert_int_equal(dvm_rank_pack(&b, &rank), 0);
	buf_line(out, "rank", &b);
	buf_free(&b);
}

static const struct journal_record records[] = {
	{ .type = JOURNAL_COUNTS, .counts = { 7, 6, 2, 5, 4, 1 } },
	{ .type = JOURNAL_PROFILE,
	  .profile = { 3, BYTES("id"), BYTES("/tmp"), BYTES("A=B") } },
	{ .type = JOURNAL_SUBMIT, .submit = { TASK, 1000, 3, true, 6, BYTES("{}") } },
	{ .type = JOURNAL_START, .start = { TASK, 2, 1, 2000, 12, 3 } },
	{ .type = JOURNAL_CANCEL, .cancelled = TASK },
	{ .type = JOURNAL_END,
	  .end = { TASK, 2, -9, 1, true, false, false, 3, 4, 5, 6, 7, BYTES("why"),
		   BYTES("n2"), 9 } },
	{ .type = JOURNAL_END, .end = { .task = TASK, .too_long = true } },
	{ .type = JOURNAL_END, .end = { .task = TASK, .cancelled = true } },
	{ .type = JOURNAL_NODES, .nodes = { 900, true, 2, 1ull << 33, false, false, true, 4, 800 } },
	{ .type = JOURNAL_NODES, .nodes = { 900, false, 2, 3, true, false } },
	{ .type = JOURNAL_NODES, .nodes = { 900, false, 2, 3, false, true } },
	{ .type = JOURNAL_WAITED, .waited = { TASK, 3, 1 } },
	{ .type = JOURNAL_PROFILE,
	  .profile = { 4, BYTES("id"), BYTES("/tmp"), BYTES("A=B"), LIMITS, BYTES("/o") } },
	{ .type = JOURNAL_PROFILE,
	  .profile = { 5, BYTES("id"), BYTES("/tmp"), BYTES("A=B"), .input = BYTES("input") } },
	{ .type = JOURNAL_END,
	  .end = { .task = TASK, .output = JOURNAL_OUTPUT, .out = BYTES("out"),
		   .err = BYTES("err"), .files = TEXTS("7.out"), .unkept = BYTES("full") } },
	{ .type = JOURNAL_END, .end = { .task = TASK, .output = JOURNAL_OUTPUT_LOST } },
};

#define RECORDS (sizeof(records) / sizeof(records[0]))

static void record_lines(struct buf *out)
{
	bool seen[JOURNAL_TYPES] = { true };
	struct journal_chain chain;
	struct buf b;
	char name[40];

	buf_init(&b, LINE_MAX_BYTES);
	journal_chain_init(&chain);
	assert_int_equal(journal_put_header(&b), 0);
	buf_line(out, "header", &b);
	for (size_t i = 0; i < RECORDS; i++) {
		seen[records[i].type] = true;
		assert_int_equal(journal_put(&b, &records[i]), 0);
		journal_seal(&chain, b.data, b.len);
		snprintf(name, sizeof(name), "record-%zu", i);
		buf_line(out, name, &b);
	}
	for (int i = 0; i < JOURNAL_TYPES; i++)
		assert_true(seen[i]); /* a new one belongs into the table */
	buf_free(&b);
}

void dvm_sections(struct buf *out)
{
	section(out, "dvm", DVM_VERSION);
	message_lines(out);
	list_lines(out);
	section(out, "journal", JOURNAL_VERSION);
	record_lines(out);
}
