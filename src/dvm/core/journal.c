/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of a journal as bytes. */
#include "dvm/core/journal.h"

#include <errno.h>
#include <string.h>

#include "libutil/hash.h"

#define MAGIC "PMI2XDVJ"
#define MAGIC_SIZE 8
#define MARK 0x4a56445fu   /* where a record may begin */
#define HEAD_SIZE 16       /* of a record */
#define HEAD_SIZE_1 12     /* the same in version 1 */
#define SUMMED 8           /* the checksum is of the bytes from here on */
#define FIRST_SUM 0x31564a44u /* in place of the sum of a record before the first */

/* ---- writing ---- */

int journal_put_header(struct buf *b)
{
	int rc = buf_append(b, MAGIC, MAGIC_SIZE);

	return rc ? rc : pack_u32(b, JOURNAL_VERSION);
}

static int put_counts(struct buf *b, const struct journal_counts *r)
{
	int rc = pack_u64(b, r->next_id);

	rc = rc ? rc : pack_u64(b, r->done);
	rc = rc ? rc : pack_u64(b, r->failed);
	rc = rc ? rc : pack_u64(b, r->line);
	rc = rc ? rc : pack_u64(b, r->unwaited);
	return rc ? rc : pack_u64(b, r->unwaited_failed);
}

static int put_profile(struct buf *b, const struct journal_profile *r)
{
	int rc = pack_u32(b, r->number);

	rc = rc ? rc : dvm_bytes_pack(b, &r->id);
	rc = rc ? rc : dvm_bytes_pack(b, &r->cwd);
	return rc ? rc : dvm_bytes_pack(b, &r->env);
}

static int put_submit(struct buf *b, const struct journal_submit *r)
{
	int rc = pack_u64(b, r->task);

	rc = rc ? rc : pack_u64(b, r->submitted_ns);
	rc = rc ? rc : pack_u32(b, r->profile);
	rc = rc ? rc : pack_u8(b, r->tied);
	rc = rc ? rc : pack_u64(b, r->line);
	return rc ? rc : dvm_bytes_pack(b, &r->json);
}

static int put_start(struct buf *b, const struct journal_start *r)
{
	int rc = pack_u64(b, r->task);

	rc = rc ? rc : pack_u32(b, r->instance);
	rc = rc ? rc : pack_u32(b, r->retries);
	rc = rc ? rc : pack_u64(b, r->placed_ns);
	return rc ? rc : pack_u32(b, r->slots);
}

static int put_end(struct buf *b, const struct journal_end *r)
{
	int rc = pack_u64(b, r->task);

	rc = rc ? rc : pack_u32(b, r->instance);
	rc = rc ? rc : pack_u32(b, (uint32_t)r->status);
	rc = rc ? rc : pack_u32(b, r->rank);
	rc = rc ? rc : pack_u8(b, r->not_started);
	rc = rc ? rc : pack_u8(b, r->too_long);
	rc = rc ? rc : pack_u8(b, r->cancelled);
	rc = rc ? rc : pack_u64(b, r->started_ns);
	rc = rc ? rc : pack_u64(b, r->ended_ns);
	rc = rc ? rc : pack_u64(b, r->user_us);
	rc = rc ? rc : pack_u64(b, r->system_us);
	rc = rc ? rc : pack_u64(b, r->peak_kib);
	rc = rc ? rc : dvm_bytes_pack(b, &r->why);
	return rc ? rc : dvm_bytes_pack(b, &r->node);
}

static int put_nodes(struct buf *b, const struct journal_nodes *r)
{
	int rc = pack_u64(b, r->since_ns);

	rc = rc ? rc : pack_u8(b, (uint8_t)(r->begins | r->stay << 1 | r->left << 2));
	rc = rc ? rc : pack_u32(b, r->nodes);
	return rc ? rc : pack_u64(b, r->slots);
}

static int put_waited(struct buf *b, const struct journal_waited *r)
{
	int rc = pack_u64(b, r->task);

	rc = rc ? rc : pack_u64(b, r->count);
	return rc ? rc : pack_u64(b, r->failed);
}

static int put_body(struct buf *b, const struct journal_record *r)
{
	int rc = pack_u8(b, (uint8_t)r->type);

	if (rc)
		return rc;
	switch (r->type) {
	case JOURNAL_COUNTS: return put_counts(b, &r->counts);
	case JOURNAL_PROFILE: return put_profile(b, &r->profile);
	case JOURNAL_SUBMIT: return put_submit(b, &r->submit);
	case JOURNAL_START: return put_start(b, &r->start);
	case JOURNAL_CANCEL: return pack_u64(b, r->cancelled);
	case JOURNAL_END: return put_end(b, &r->end);
	case JOURNAL_NODES: return put_nodes(b, &r->nodes);
	case JOURNAL_WAITED: return put_waited(b, &r->waited);
	default: return -EMSGSIZE;
	}
}

static void set_u32(char *at, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		at[i] = (char)(v >> 8 * i);
}

static uint32_t get_u32(const char *at)
{
	struct cursor c;

	cursor_init(&c, at, 4);
	return unpack_u32(&c);
}

/* Sets the header in front of a body; journal_seal does the rest. */
static void set_head(char *at, size_t len)
{
	set_u32(at, MARK);
	set_u32(at + 8, (uint32_t)len);
}

int journal_put(struct buf *b, const struct journal_record *r)
{
	static const char head[HEAD_SIZE];
	size_t begin = b->len, len;
	int rc = buf_append(b, head, HEAD_SIZE);

	rc = rc ? rc : put_body(b, r);
	len = b->len - begin - HEAD_SIZE;
	if (!rc && len > JOURNAL_RECORD_MAX)
		rc = -EMSGSIZE;
	if (rc)
		b->len = begin;
	else
		set_head(b->data + begin, len);
	return rc;
}

/* ---- the chain ---- */

/* The sum of a record at an offset: it is no record at another one. */
static uint32_t sum_of(uint64_t at, const void *data, size_t len)
{
	return hash_seeded(at << 8 | JOURNAL_VERSION, data, len);
}

void journal_chain_init(struct journal_chain *c)
{
	*c = (struct journal_chain){ JOURNAL_HEADER_SIZE, FIRST_SUM };
}

void journal_seal(struct journal_chain *c, void *records, size_t len)
{
	char *at = records, *end = at + len;

	while (at < end) {
		size_t n = HEAD_SIZE + get_u32(at + 8);

		set_u32(at + 12, c->sum);
		c->sum = sum_of(c->at, at + SUMMED, n - SUMMED);
		set_u32(at + 4, c->sum);
		c->at += n;
		at += n;
	}
}

/* ---- reading ---- */

static void get_bytes(struct cursor *c, struct dvm_bytes *v)
{
	v->data = unpack_bytes(c, JOURNAL_RECORD_MAX, &v->len);
}

static bool get_bool(struct cursor *c)
{
	return unpack_u8(c) != 0;
}

static void get_counts(struct cursor *c, struct journal_counts *r)
{
	r->next_id = unpack_u64(c);
	r->done = unpack_u64(c);
	r->failed = unpack_u64(c);
	r->line = unpack_u64(c);
	if (!cursor_left(c)) /* of a release that did not count these */
		return;
	r->unwaited = unpack_u64(c);
	r->unwaited_failed = unpack_u64(c);
}

static void get_profile(struct cursor *c, struct journal_profile *r)
{
	r->number = unpack_u32(c);
	get_bytes(c, &r->id);
	get_bytes(c, &r->cwd);
	get_bytes(c, &r->env);
}

static void get_submit(struct cursor *c, struct journal_submit *r)
{
	r->task = unpack_u64(c);
	r->submitted_ns = unpack_u64(c);
	r->profile = unpack_u32(c);
	r->tied = get_bool(c);
	r->line = unpack_u64(c);
	get_bytes(c, &r->json);
}

static void get_start(struct cursor *c, struct journal_start *r)
{
	r->task = unpack_u64(c);
	r->instance = unpack_u32(c);
	r->retries = unpack_u32(c);
	r->placed_ns = unpack_u64(c);
	r->slots = unpack_u32(c);
}

static void get_end(struct cursor *c, struct journal_end *r)
{
	r->task = unpack_u64(c);
	r->instance = unpack_u32(c);
	r->status = (int32_t)unpack_u32(c);
	r->rank = unpack_u32(c);
	r->not_started = get_bool(c);
	r->too_long = get_bool(c);
	r->cancelled = get_bool(c);
	r->started_ns = unpack_u64(c);
	r->ended_ns = unpack_u64(c);
	r->user_us = unpack_u64(c);
	r->system_us = unpack_u64(c);
	r->peak_kib = unpack_u64(c);
	get_bytes(c, &r->why);
	get_bytes(c, &r->node);
}

static void get_nodes(struct cursor *c, struct journal_nodes *r)
{
	uint8_t flags;

	r->since_ns = unpack_u64(c);
	flags = unpack_u8(c);
	r->begins = flags & 1;
	r->stay = flags & 2;
	r->left = flags & 4;
	r->nodes = unpack_u32(c);
	r->slots = unpack_u64(c);
}

static void get_waited(struct cursor *c, struct journal_waited *r)
{
	r->task = unpack_u64(c);
	r->count = unpack_u64(c);
	r->failed = unpack_u64(c);
}

static bool get_body(struct cursor *c, struct journal_record *r)
{
	*r = (struct journal_record){ .type = (enum journal_type)unpack_u8(c) };
	switch (r->type) {
	case JOURNAL_COUNTS: get_counts(c, &r->counts); break;
	case JOURNAL_PROFILE: get_profile(c, &r->profile); break;
	case JOURNAL_SUBMIT: get_submit(c, &r->submit); break;
	case JOURNAL_START: get_start(c, &r->start); break;
	case JOURNAL_CANCEL: r->cancelled = unpack_u64(c); break;
	case JOURNAL_END: get_end(c, &r->end); break;
	case JOURNAL_NODES: get_nodes(c, &r->nodes); break;
	case JOURNAL_WAITED: get_waited(c, &r->waited); break;
	default: return false;
	}
	return cursor_done(c);
}

int journal_open(struct journal_reader *j, const void *data, size_t len,
		 uint32_t *version)
{
	struct cursor c;
	const void *magic;

	*j = (struct journal_reader){ .data = data, .len = len, .sum = FIRST_SUM,
		.at = JOURNAL_HEADER_SIZE, .cut = JOURNAL_HEADER_SIZE };
	cursor_init(&c, data, len);
	magic = unpack_raw(&c, MAGIC_SIZE);
	j->version = *version = unpack_u32(&c);
	if (!cursor_ok(&c) || memcmp(magic, MAGIC, MAGIC_SIZE))
		return -EBADMSG;
	return *version == 1 || *version == JOURNAL_VERSION ? 0 : -EPROTONOSUPPORT;
}

/* A record as it lies in a journal. */
struct frame {
	const void *body;
	size_t len;      /* of all of it */
	uint32_t before; /* sum of the record before it */
	uint32_t sum;
};

static bool frame_1(const struct journal_reader *j, size_t at, struct frame *f)
{
	uint32_t mark, len;
	struct cursor c;

	cursor_init(&c, j->data + at, j->len - at);
	mark = unpack_u32(&c);
	len = unpack_u32(&c);
	f->sum = unpack_u32(&c);
	f->body = mark == MARK && len <= JOURNAL_RECORD_MAX ? unpack_raw(&c, len) : NULL;
	f->len = HEAD_SIZE_1 + (size_t)len;
	return f->body && hash_seeded(1, f->body, len) == f->sum;
}

static bool frame_2(const struct journal_reader *j, size_t at, struct frame *f)
{
	uint32_t mark, len;
	struct cursor c;

	cursor_init(&c, j->data + at, j->len - at);
	mark = unpack_u32(&c);
	f->sum = unpack_u32(&c);
	len = unpack_u32(&c);
	f->before = unpack_u32(&c);
	f->body = mark == MARK && len <= JOURNAL_RECORD_MAX ? unpack_raw(&c, len) : NULL;
	f->len = HEAD_SIZE + (size_t)len;
	return f->body &&
	       sum_of(at, j->data + at + SUMMED, f->len - SUMMED) == f->sum;
}

/* Is there a whole record at `at`? */
static bool whole(const struct journal_reader *j, size_t at, struct frame *f,
		  struct journal_record *r)
{
	struct cursor c;

	if (!(j->version == 1 ? frame_1(j, at, f) : frame_2(j, at, f)))
		return false;
	cursor_init(&c, f->body, f->len - (j->version == 1 ? HEAD_SIZE_1 : HEAD_SIZE));
	return get_body(&c, r);
}

static void note_damage(struct journal_reader *j, size_t from, size_t to)
{
	if (!j->damaged)
		j->damaged_at = from;
	j->damaged += to - from;
}

/* Damaged bytes in front of it are those that are missing, or hide them. */
static void note_missing(struct journal_reader *j, const struct frame *f)
{
	if (j->version == 1 || f->before == j->sum)
		return;
	if (!j->gaps++)
		j->gap_at = j->begin;
}

bool journal_next(struct journal_reader *j, struct journal_record *r)
{
	struct frame f = { 0 };
	bool found = false;

	for (size_t at = j->at; !found && j->len - at > HEAD_SIZE_1; at++) {
		found = whole(j, at, &f, r);
		j->begin = at;
	}
	if (!found)
		return false;
	if (j->at < j->begin)
		note_damage(j, j->at, j->begin);
	else
		note_missing(j, &f);
	j->at = j->cut = j->begin + f.len;
	j->sum = f.sum;
	return true;
}
