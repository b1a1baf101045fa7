/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between pmi2x's processes, byte for byte, and memory that they share, beside
 * a reference: changed under the same version, other builds would misread it.
 *
 * The reference has a section for each version, and in it a line for each thing:
 * its name, and bytes in hexadecimal or offsets and sizes. Written anew with
 * --write FILE.
 */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>

#include "libcoll/fetch.h"
#include "libio/frames.h"
#include "libio/handshake.h"
#include "libio/protocol.h"
#include "libpmi/control.h"
#include "libpmi/extension.h"
#include "libpmi/names.h"
#include "libpmi/spawn.h"
#include "libpmi/status.h"
#include "libshm/image_layout.h"
#include "libshm/region_layout.h"
#include "libshm/slots_layout.h"
#include "wire-lines.h"

#define REFERENCE "testsuite/unit/wire-reference"
#define TEXT_MAX (1 << 20)

int __wrap_nonce_create(uint8_t nonce[NONCE_BYTES]);

int __wrap_nonce_create(uint8_t nonce[NONCE_BYTES])
{
	memset(nonce, 0x11, NONCE_BYTES);
	return 0;
}

/* ---- lines ---- */

void section(struct buf *out, const char *name, unsigned version)
{
	assert_int_equal(buf_printf(out, "%s %u\n", name, version), 0);
}

void bytes_line(struct buf *out, const char *name, const void *data, size_t len)
{
	const unsigned char *at = data;

	assert_int_equal(buf_printf(out, "  %s ", name), 0);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(buf_printf(out, "%02x", at[i]), 0);
	assert_int_equal(buf_puts(out, "\n"), 0);
}

void buf_line(struct buf *out, const char *name, struct buf *b)
{
	bytes_line(out, name, b->data, b->len);
	buf_clear(b);
}

static void number_line(struct buf *out, const char *name, size_t a, size_t b)
{
	assert_int_equal(buf_printf(out, "  %s %zu %zu\n", name, a, b), 0);
}

/* ---- links ---- */

static void give(struct handshake *to, struct handshake *from)
{
	struct buf *out = handshake_output(from);
	size_t done = 0, n;
	void *at;

	while (done < out->len && (n = handshake_room(to, &at))) {
		n = n < out->len - done ? n : out->len - done;
		memcpy(at, out->data + done, n);
		handshake_input(to, n);
		done += n;
	}
}

static void handshakes(struct buf *out)
{
	struct handshake_self selves[2] = {
		{ .jobid = "17.0", .build = "b", .position = 3, .protocol = 9 },
		{ .jobid = "17.0", .build = "c", .position = 1, .protocol = 9 },
	};
	struct sockaddr_in one = { .sin_family = AF_INET, .sin_port = htons(5) };
	struct sockaddr_storage here = { 0 }, there = { 0 };
	struct handshake *from, *to;

	for (int i = 0; i < 2; i++)
		memset(selves[i].secret.bytes, 0x22, SECRET_BYTES);
	memcpy(&here, &one, sizeof(one));
	one.sin_port = htons(6);
	memcpy(&there, &one, sizeof(one));
	assert_int_equal(handshake_connect(&from, &selves[0], 1, &here, &there),
			 0);
	assert_int_equal(handshake_accept(&to, &selves[1], &there, &here), 0);
	give(to, from);
	buf_line(out, "hello", handshake_output(from));
	give(from, to);
	buf_line(out, "answer", handshake_output(to));
	buf_line(out, "proof", handshake_output(from));
	handshake_destroy(from);
	handshake_destroy(to);
}

static const char *const frame_names[FRAME_TYPES] = {
	[FRAME_COLLECTIVE] = "collective", [FRAME_CONTROL_UP] = "control-up",
	[FRAME_CONTROL_DOWN] = "control-down", [FRAME_CHOSEN] = "chosen",
	[FRAME_TAKEN] = "taken", [FRAME_GOODBYE] = "goodbye",
	[FRAME_APART] = "apart", [FRAME_STORE] = "store",
};

static void frames(struct buf *out)
{
	for (unsigned type = 0; type < FRAME_TYPES; type++) {
		size_t head_len = type == FRAME_COLLECTIVE ? 4 : 0;
		struct payload *p = frame_header(type, "head", head_len, 0x203);
		char name[40];

		assert_non_null(frame_names[type]);
		snprintf(name, sizeof(name), "frame-%s", frame_names[type]);
		bytes_line(out, name, p->data, p->len);
		payload_unref(p);
	}
}

/* ---- collectives ---- */

static const struct coll_msg messages[] = {
	{ .type = COLL_MSG_UP, .kind = COLL_FENCE, .seq = 7, .more = true },
	{ .type = COLL_MSG_UP, .kind = COLL_GATHER, .seq = 8 },
	{ .type = COLL_MSG_UP, .kind = COLL_RING, .seq = 9, .count = 1ull << 40,
	  .left_len = 17 },
	{ .type = COLL_MSG_DOWN, .kind = COLL_FENCE, .seq = 1, .size = 70 },
	{ .type = COLL_MSG_DOWN, .kind = COLL_GATHER, .seq = 3, .failed = true,
	  .fault = { .reason = "why" } },
	{ .type = COLL_MSG_DOWN, .kind = COLL_RING, .seq = 2, .count = 5,
	  .total = 1ull << 50, .left_len = 3 },
	{ .type = COLL_MSG_REST, .kind = COLL_GATHER, .seq = 5 },
	{ .type = COLL_MSG_UP, .kind = COLL_PMIX, .seq = 6 },
	{ .type = COLL_MSG_FAULT,
	  .fault = { .from = { 1, COLL_NEVER, 3 }, .reason = "why" } },
	{ .type = COLL_MSG_SUB_UP,
	  .subset = { .key = "0123456789abcde", .members = 3, .above = { 4, 7 },
		      .nabove = 2, .last = true } },
	{ .type = COLL_MSG_SUB_UP, .failed = true, .fault = { .reason = "why" },
	  .subset = { .key = "0123456789abcde", .members = 3 } },
	{ .type = COLL_MSG_SUB_DOWN, .subset = { .key = "0123456789abcde" } },
	{ .type = COLL_MSG_SUB_DOWN, .failed = true,
	  .fault = { .reason = "why" },
	  .subset = { .key = "0123456789abcde" } },
	{ .type = COLL_MSG_SUB_OPEN,
	  .subset = { .key = "0123456789abcde", .first = 2 } },
	{ .type = COLL_MSG_SUB_FAIL, .fault = { .reason = "why" },
	  .subset = { .key = "0123456789abcde", .first = 1 } },
	{ .type = COLL_MSG_FETCH,
	  .fetch = { .id = 5, .op = 2, .rank = 9, .timeout = 1000 } },
	{ .type = COLL_MSG_FETCHED,
	  .fetch = { .id = 5, .status = COLL_FETCH_FOUND } },
	{ .type = COLL_MSG_FETCHED, .fault = { .reason = "why" },
	  .fetch = { .id = 5, .status = COLL_FETCH_REFUSED } },
	{ .type = COLL_MSG_FLOOD },
	{ .type = COLL_MSG_SERIES, .kind = COLL_PMIX, .seq = 2 * COLL_SERIES,
	  .fault = { .reason = "why" } },
};

#define MESSAGES (sizeof(messages) / sizeof(messages[0]))

static void collectives(struct buf *out)
{
	bool seen[COLL_MSG_TYPES] = { false };
	struct buf b;
	char name[20];

	buf_init(&b, LINE_MAX_BYTES);
	for (size_t i = 0; i < MESSAGES; i++) {
		seen[messages[i].type] = true;
		assert_int_equal(coll_msg_pack(&b, &messages[i]), 0);
		snprintf(name, sizeof(name), "collective-%zu", i);
		buf_line(out, name, &b);
	}
	for (int i = 0; i < COLL_MSG_TYPES; i++)
		assert_true(seen[i]); /* a new one belongs into the table */
	buf_free(&b);
}

static void record(struct payload_vec *v, const char *key, const char *value)
{
	struct payload *p;
	struct buf b;

	buf_init(&b, LINE_MAX_BYTES);
	assert_int_equal(record_append(&b, key, strlen(key), value,
				       strlen(value)), 0);
	p = payload_copy(b.data, b.len);
	assert_int_equal(payload_vec_add(v, p), 0);
	payload_unref(p);
	buf_free(&b);
}

static void image_line(struct buf *out, const char *name,
		       struct payload_vec *parts,
		       struct payload *(*build)(const struct payload_vec *v))
{
	struct payload *image = build(parts);

	assert_non_null(image);
	bytes_line(out, name, image->data, image->len);
	payload_unref(image);
	payload_vec_clear(parts);
}

static struct payload *fence_of(const struct payload_vec *v)
{
	int error;

	return image_build_fence(v, &error);
}

static struct payload *gather_of(const struct payload_vec *v)
{
	int error;

	return image_build_gather(v, v->count, NULL, &error);
}

static void values(struct payload_vec *v, const char *const texts[2])
{
	for (int i = 0; i < 2; i++) {
		struct payload *p = gather_contribution(NULL, texts[i],
							strlen(texts[i]));

		assert_int_equal(payload_vec_add(v, p), 0);
		payload_unref(p);
	}
}

static void images(struct buf *out)
{
	static const char *const equal[] = { "ab", "cd" };
	static const char *const others[] = { "abcdef", "g" };
	struct payload_vec v;

	payload_vec_init(&v);
	record(&v, "key", "value");
	bytes_line(out, "record", v.items[0]->data, v.items[0]->len);
	record(&v, "k", "");
	image_line(out, "fence", &v, fence_of);
	values(&v, equal);
	bytes_line(out, "contribution", v.items[0]->data, v.items[0]->len);
	image_line(out, "gather", &v, gather_of);
	values(&v, others);
	image_line(out, "gather-uneven", &v, gather_of);
}

/* ---- control messages ---- */

static const char *const control_names[CONTROL_TYPES] = {
	[CONTROL_SPAWN] = "spawn", [CONTROL_PUBLISH] = "publish",
	[CONTROL_UNPUBLISH] = "unpublish", [CONTROL_LOOKUP] = "lookup",
	[CONTROL_NAMES] = "names",
	[CONTROL_ABORT] = "abort", [CONTROL_REPORT] = "report",
	[CONTROL_NOTE] = "note",
	[CONTROL_READY] = "ready", [CONTROL_TRACE] = "trace",
	[CONTROL_STALL] = "stall", [CONTROL_STATUS] = "status",
	[CONTROL_QUERY] = "query", [CONTROL_EXPIRE] = "expire",
	[CONTROL_STARTED] = "started", [CONTROL_REPLY] = "reply",
};

static void controls(struct buf *out)
{
	struct buf b;
	char name[40];

	buf_init(&b, LINE_MAX_BYTES);
	for (unsigned type = 0; type < CONTROL_TYPES; type++) {
		const struct control_msg msg = {
			.type = type,
			.origin = 0x1020304,
			.id = 5,
			.rank = CONTROL_NO_RANK,
			.code = -2,
			.name = "name",
			.text = "text",
			.body = "body",
			.body_len = 4,
		};

		assert_int_equal(control_pack(&b, &msg), 0);
		assert_non_null(control_names[type]);
		snprintf(name, sizeof(name), "control-%s", control_names[type]);
		buf_line(out, name, &b);
	}
	buf_free(&b);
}

static void names(struct buf *out)
{
	struct names_item item = {
		.key = "key", .value = "v", .len = 1, .from = { "space", NULL, 7 },
	};
	const struct names_request r = {
		.op = NAMES_PUBLISH, .range = NAMES_OF_NODE, .once = true, .wait = 1,
		.timeout_ms = 2, .items = &item, .count = 1,
	};
	const struct names_answer a = { .error = -2, .items = &item, .count = 1 };
	struct buf b;

	buf_init(&b, LINE_MAX_BYTES);
	assert_int_equal(names_pack_request(&b, &r), 0);
	buf_line(out, "names", &b);
	assert_int_equal(names_pack_answer(&b, &a), 0);
	buf_line(out, "names-answer", &b);
	buf_free(&b);
}

static void bodies(struct buf *out)
{
	const struct pmi_field pair = {
		.key = "wdir", .key_len = 4, .value = "/tmp", .value_len = 4,
	};
	struct spawn_request *s = spawn_new();
	struct status_run run = { .first = 1, .last = 4, .phase = STATUS_ACTIVE,
				  .stopped = true, .entered = { 1, 2, 3 } };
	struct status_waiter waiter = { .position = 1, .id = 40000, .other = true };
	struct status_comer comer = { .rank = 2, .port = 40001 };
	const struct node_status status = {
		.wait = (char *)"wait",
		.keys = { .key = (char *)"key", .age_s = 60, .torch = true, .nwaiters = 1,
			  .waiters = &waiter, .ncomers = 1, .comers = &comer },
		.age_ms = 12, .requests = 3, .ended = { 4, 5, 6 },
		.runs = &run, .nruns = 1,
	};
	struct buf b;

	buf_init(&b, LINE_MAX_BYTES);
	assert_int_equal(spawn_add_command(s), 0);
	assert_int_equal(spawn_set_program(s, "a.out", 5), 0);
	assert_int_equal(spawn_set_nprocs(s, 3), 0);
	assert_int_equal(spawn_add_arg(s, "-v", 2), 0);
	assert_int_equal(spawn_add_info(s, &pair), 0);
	assert_int_equal(spawn_add_preput(s, &pair), 0);
	assert_int_equal(spawn_pack(&b, s), 0);
	buf_line(out, "spawn", &b);
	assert_int_equal(status_pack(&b, &status), 0);
	assert_int_equal(pack_u32(&b, 1), 0);
	assert_int_equal(status_pack_link(&b, 9, true, STATUS_LINK_UP, 77), 0);
	assert_int_equal(status_pack_waits(&b, &status), 0);
	buf_line(out, "status", &b);
	spawn_free(s);
	buf_free(&b);
}

/* ---- shared memory ---- */

#define FIELD(out, type, name)                                                 \
	number_line(out, #type "." #name, offsetof(struct type, name),        \
		    sizeof(((struct type *)NULL)->name))

static void region(struct buf *out)
{
	number_line(out, "header", REGION_HEADER_SIZE, REGION_BLOCK_ALIGNMENT);
	number_line(out, "magic", REGION_MAGIC, REGION_CHAIN_MAX);
	number_line(out, "index", INDEX_UNIT, INDEX_BUCKET);
	FIELD(out, region_header, magic);
	FIELD(out, region_header, byte_order);
	FIELD(out, region_header, version);
	FIELD(out, region_header, header_size);
	FIELD(out, region_header, size);
	FIELD(out, region_header, view);
	FIELD(out, region_index, table);
	FIELD(out, region_index, base);
	FIELD(out, region_index, buckets);
	FIELD(out, region_index, count);
	FIELD(out, region_view, count);
	FIELD(out, region_view, index);
}

static void slots(struct buf *out)
{
	number_line(out, "slot", SLOT_SIZE, SLOT_CELLS);
	number_line(out, "cell", SLOT_CELL_SIZE, SLOT_HEAD_SIZE);
	number_line(out, "kinds", SLOT_KINDS, SLOT_RING);
	FIELD(out, slots_header, kinds);
	FIELD(out, slots_header, changed);
	FIELD(out, slot_cell, ticket);
	FIELD(out, slot_cell, kind);
	FIELD(out, slot_cell, len);
	FIELD(out, slot_cell, stride);
	FIELD(out, slot_cell, done);
	FIELD(out, slot_reply, ticket);
	FIELD(out, slot_reply, rc);
	FIELD(out, slot_reply, offset);
	FIELD(out, slot_reply, length);
	FIELD(out, slot_reply, left);
	FIELD(out, slot_reply, right);
	FIELD(out, slot_replies, text);
	FIELD(out, slot_replies, watched);
	FIELD(out, slot_shown, version);
	FIELD(out, slot_shown, len);
	FIELD(out, slot_shown, records);
	FIELD(out, slots_board, count);
	FIELD(out, slots_board, rings);
	FIELD(out, slots_board, need);
	FIELD(out, slot_ring, right);
	number_line(out, "slots_board.replies",
		    offsetof(struct slots_board, replies),
		    sizeof(struct slot_replies));
}

/* ---- the library and its server ---- */

static void extension(struct buf *out)
{
	static const char *const words[] = {
		EXT_KEY_VERSION, EXT_KEY_BUILD, EXT_KEY_REGION,
		EXT_KEY_REGION_SIZE, EXT_KEY_NODES, EXT_KEY_SLOTS,
		EXT_KEY_SLOTS_SIZE, EXT_KEY_SLOTS_BOARD, EXT_KEY_SLOT,
		EXT_KEY_SILENT, EXT_KEY_RANK_TRACE, EXT_CMD_PUT, EXT_CMD_FENCE,
		EXT_CMD_ALLGATHER, EXT_CMD_READ, EXT_KEY_RECORDS,
		EXT_KEY_VALUE, EXT_KEY_STRIDE, EXT_KEY_OFFSET, EXT_KEY_LENGTH,
		EXT_KEY_DATA, EXT_KEY_DONE, EXT_ENV_RANK_TRACE,
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_int_equal(buf_printf(out, "  word-%zu %s\n", i,
					    words[i]), 0);
	number_line(out, "stamps", RANK_TRACE_EVENTS, RANK_TRACE_FINALIZE);
	number_line(out, "read", EXT_READ_MAX, 0);
}

/* ---- the reference ---- */

static void write_all(struct buf *out)
{
	section(out, "handshake", HANDSHAKE_VERSION);
	handshakes(out);
	section(out, "protocol", PROTOCOL_VERSION);
	frames(out);
	collectives(out);
	controls(out);
	bodies(out);
	names(out);
	store_section(out);
	section(out, "image", IMAGE_VERSION);
	images(out);
	section(out, "region", REGION_VERSION);
	region(out);
	section(out, "slots", SLOTS_VERSION);
	slots(out);
	section(out, "extension", EXT_VERSION);
	extension(out);
	dvm_sections(out);
	local_sections(out);
}

/* The place of a section's version, and the files that must change with it. */
static const struct {
	const char *section;
	const char *where;
} places[] = {
	{ "handshake", "HANDSHAKE_VERSION in src/common/libio/handshake.h" },
	{ "protocol", "PROTOCOL_VERSION in src/common/libio/protocol.h" },
	{ "image", "IMAGE_VERSION in src/common/libshm/image_layout.h and, since images travel between nodes, PROTOCOL_VERSION in src/common/libio/protocol.h" },
	{ "region", "REGION_VERSION in src/common/libshm/region.h" },
	{ "slots", "SLOTS_VERSION in src/common/libshm/slots_layout.h" },
	{ "extension", "EXT_VERSION in src/common/libpmi/extension.h" },
	{ "store", "STORE_CLIENT_VERSION in src/common/libstore/store_msg.h and, since the messages travel between nodes, PROTOCOL_VERSION in src/common/libio/protocol.h" },
	{ "dvm", "DVM_VERSION in src/dvm/core/dvm_msg.h" },
	{ "journal", "JOURNAL_VERSION in src/dvm/core/journal.h" },
	{ "setup", "SETUP_VERSION in src/agent/setup.h" },
	{ "pmix", "PMIX_MSG_VERSION in src/common/libpmi/pmix_msg.h" },
};

static const char *place_of(const char *heading)
{
	size_t len = strcspn(heading, " ");

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (strlen(places[i].section) == len &&
		    !strncmp(places[i].section, heading, len))
			return places[i].where;
	return "its version";
}

static bool next_line(FILE *from, char line[LINE_MAX_BYTES])
{
	do {
		if (!fgets(line, LINE_MAX_BYTES, from))
			return false;
	} while (line[0] == '#');
	return true;
}

static void differs(const char *heading, const char *now, const char *was)
{
	if (now[0] != ' ' && was[0] != ' ')
		fail_msg("the reference is of %.*s, this is %.*s: write it anew with wire-test --write " REFERENCE,
			 (int)strcspn(was, "\n"), was,
			 (int)strcspn(now, "\n"), now);
	fail_msg("%.*s has changed:\nis  %swas %sOther builds would misread it: raise %s, then write the reference anew with wire-test --write " REFERENCE,
		 (int)strcspn(heading, "\n"), heading, now, was,
		 place_of(heading));
}

TEST(nothing_has_changed_under_its_version)
{
	const char *srcdir = getenv("srcdir");
	char path[4096], was[LINE_MAX_BYTES], now[LINE_MAX_BYTES];
	char heading[LINE_MAX_BYTES] = "";
	FILE *reference, *text;
	struct buf out;

	snprintf(path, sizeof(path), "%s/" REFERENCE, srcdir ? srcdir : ".");
	reference = fopen(path, "r");
	if (!reference)
		fail_msg("cannot read %s: %s", path, strerror(errno));
	buf_init(&out, TEXT_MAX);
	write_all(&out);
	text = fmemopen(out.data, out.len, "r");
	while (next_line(text, now)) {
		if (now[0] != ' ')
			strcpy(heading, now);
		if (!next_line(reference, was))
			strcpy(was, "nothing\n");
		if (strcmp(now, was))
			differs(heading, now, was);
	}
	if (next_line(reference, was))
		differs(heading, "nothing\n", was);
	fclose(text);
	fclose(reference);
	buf_free(&out);
}

static int write_reference(const char *path)
{
	FILE *to = fopen(path, "w");
	struct buf out;
	int rc;

	if (!to) {
		perror(path);
		return 1;
	}
	buf_init(&out, TEXT_MAX);
	write_all(&out);
	fputs("# SPDX-License-Identifier: BSD-3-Clause\n"
	      "# Written by wire-test --write, and compared by it.\n", to);
	fwrite(out.data, 1, out.len, to);
	rc = fclose(to);
	buf_free(&out);
	return rc != 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--write"))
		return write_reference(argv[2]);
	return unit_run(NULL, NULL, NULL);
}
