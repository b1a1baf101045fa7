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

/* ---- bodies ---- */

/* The rest of a record is missing: an older version did not have it. */
static bool is_older(struct coder *c)
{
	return !c->out && !cursor_left(&c->in);
}

static void code_all(struct coder *c, struct dvm_bytes *v)
{
	dvm_code_bytes(c, v, JOURNAL_RECORD_MAX);
}

static void code_counts(struct coder *c, struct journal_record *record)
{
	struct journal_counts *r = &record->counts;

	code_u64(c, &r->next_id);
	code_u64(c, &r->done);
	code_u64(c, &r->failed);
	code_u64(c, &r->line);
	if (is_older(c))
		return;
	code_u64(c, &r->unwaited);
	code_u64(c, &r->unwaited_failed);
}

static void code_profile(struct coder *c, struct journal_record *r)
{
	struct journal_profile *p = &r->profile;

	code_u32(c, &p->number);
	code_all(c, &p->id);
	code_all(c, &p->cwd);
	code_all(c, &p->env);
	/* Fields at the end that are empty are not written, as in earlier releases. */
	if (c->out ? p->limits.umask || p->limits.given || p->outputs.len || p->input.len :
		     cursor_left(&c->in))
		dvm_code_limits(c, &p->limits);
	if (c->out ? p->outputs.len || p->input.len : cursor_left(&c->in))
		code_all(c, &p->outputs);
	if (c->out ? p->input.len : cursor_left(&c->in))
		code_all(c, &p->input);
}

static void code_submit(struct coder *c, struct journal_record *record)
{
	struct journal_submit *r = &record->submit;

	code_u64(c, &r->task);
	code_u64(c, &r->submitted_ns);
	code_u32(c, &r->profile);
	code_flag(c, &r->tied);
	code_u64(c, &r->line);
	code_all(c, &r->json);
}

static void code_start(struct coder *c, struct journal_record *record)
{
	struct journal_start *r = &record->start;

	code_u64(c, &r->task);
	code_u32(c, &r->instance);
	code_u32(c, &r->retries);
	code_u64(c, &r->placed_ns);
	code_u32(c, &r->slots);
	if (!is_older(c))
		code_u32(c, &r->gpus);
}

static void code_cancel(struct coder *c, struct journal_record *r)
{
	code_u64(c, &r->cancelled);
}

static void code_output(struct coder *c, struct journal_end *r)
{
	if (is_older(c))
		return;
	CODE_ENUM(c, &r->output, JOURNAL_OUTPUTS);
	if (r->output != JOURNAL_OUTPUT)
		return;
	code_all(c, &r->out);
	code_all(c, &r->err);
	code_all(c, &r->files);
	code_all(c, &r->unkept);
	CODE_CHECK(c, dvm_texts_ok(&r->files, 0));
}

static void code_ended(struct coder *c, struct journal_record *record)
{
	struct journal_end *r = &record->end;

	code_u64(c, &r->task);
	code_u32(c, &r->instance);
	code_i32(c, &r->status);
	code_u32(c, &r->rank);
	code_flag(c, &r->not_started);
	code_flag(c, &r->too_long);
	code_flag(c, &r->cancelled);
	code_u64(c, &r->started_ns);
	code_u64(c, &r->ended_ns);
	code_u64(c, &r->user_us);
	code_u64(c, &r->system_us);
	code_u64(c, &r->peak_kib);
	code_all(c, &r->why);
	code_all(c, &r->node);
	code_output(c, r);
	if (!is_older(c))
		code_u64(c, &r->told_ns);
}

static void code_nodes(struct coder *c, struct journal_record *record)
{
	struct journal_nodes *r = &record->nodes;
	uint8_t flags = (uint8_t)(r->begins | r->stay << 1 | r->left << 2 |
				    r->simulated << 3);

	code_u64(c, &r->since_ns);
	code_u8(c, &flags);
	code_u32(c, &r->nodes);
	code_u64(c, &r->slots);
	if (!c->out) {
		r->begins = flags & 1;
		r->stay = flags & 2;
		r->left = flags & 4;
		r->simulated = flags & 8;
	}
	if (is_older(c))
		return;
	code_u64(c, &r->gpus);
	code_u64(c, &r->from_ns);
}

static void code_waited(struct coder *c, struct journal_record *r)
{
	code_u64(c, &r->waited.task);
	code_u64(c, &r->waited.count);
	code_u64(c, &r->waited.failed);
}

/* The fields of each type. */
static void (*const codes[JOURNAL_TYPES])(struct coder *c, struct journal_record *r) = {
	[JOURNAL_COUNTS] = code_counts,
	[JOURNAL_PROFILE] = code_profile,
	[JOURNAL_SUBMIT] = code_submit,
	[JOURNAL_START] = code_start,
	[JOURNAL_CANCEL] = code_cancel,
	[JOURNAL_END] = code_ended,
	[JOURNAL_NODES] = code_nodes,
	[JOURNAL_WAITED] = code_waited,
};

/* ---- writing ---- */

int journal_put_header(struct buf *b)
{
	int rc = buf_append(b, MAGIC, MAGIC_SIZE);

	return rc ? rc : pack_u32(b, JOURNAL_VERSION);
}

static int put_body(struct buf *b, const struct journal_record *r)
{
	struct coder c = { .out = b };

	if ((unsigned int)r->type >= JOURNAL_TYPES || !codes[r->type])
		return -EMSGSIZE;
	c.rc = pack_u8(b, (uint8_t)r->type);
	codes[r->type](&c, (struct journal_record *)r);
	return c.rc;
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

/* Put the header in front of a body; journal_seal does the rest. */
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
static uint32_t sum_of(uint32_t version, uint64_t at, const void *data, size_t len)
{
	return hash_seeded(at << 8 | version, data, len);
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
		c->sum = sum_of(JOURNAL_VERSION, c->at, at + SUMMED, n - SUMMED);
		set_u32(at + 4, c->sum);
		c->at += n;
		at += n;
	}
}

/* ---- reading ---- */

static bool get_body(struct cursor in, struct journal_record *r)
{
	struct coder c = { .in = in };
	uint8_t type = unpack_u8(&c.in);

	*r = (struct journal_record){ .type = (enum journal_type)type };
	if (type >= JOURNAL_TYPES || !codes[type])
		return false;
	codes[type](&c, r);
	return !coder_end(&c);
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
	return *version >= 1 && *version <= JOURNAL_VERSION ? 0 : -EPROTONOSUPPORT;
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
	       sum_of(j->version, at, j->data + at + SUMMED, f->len - SUMMED) == f->sum;
}

/* True: a whole record is at `at`. */
static bool whole(const struct journal_reader *j, size_t at, struct frame *f,
		  struct journal_record *r)
{
	struct cursor c;

	if (!(j->version == 1 ? frame_1(j, at, f) : frame_2(j, at, f)))
		return false;
	cursor_init(&c, f->body, f->len - (j->version == 1 ? HEAD_SIZE_1 : HEAD_SIZE));
	return get_body(c, r);
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
