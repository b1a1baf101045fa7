/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun's engine: frames of several links in any order, spawns that end, links
 * that break, a parent that answers or not. It answers no link that is lost.
 */
#include "fuzz.h"

#include <errno.h>

#include "libpmi/names.h"
#include "libpmi/step_services.h"

#define LINKS 3
#define TOKENS 64
#define FRAME_BYTES_MAX 600

struct srun {
	struct step_services *launcher;
	bool links[LINKS]; /* is lost */
	uint32_t spawned[TOKENS], nspawned;
	uint32_t forwarded[TOKENS], nforwarded;
	int reports, notes, aborts, readies;
	bool refuses;
	uint64_t now;
};

static bool is_odd(void *arg, uint32_t position)
{
	return position % 2;
}

static void on_reply(void *arg, void *link, const void *data, size_t len)
{
	struct srun *s = arg;
	struct control_msg msg;

	FUZZ_CHECK(!*(bool *)link);
	FUZZ_CHECK((bool *)link >= s->links && (bool *)link < s->links + LINKS);
	FUZZ_CHECK(!control_unpack(data, len, &msg));
	FUZZ_CHECK(msg.type == CONTROL_REPLY || msg.type == CONTROL_STARTED);
	FUZZ_CHECK(msg.type == CONTROL_REPLY || is_odd(arg, msg.id));
	control_free(&msg);
}

static int on_spawn(void *arg, uint32_t token, const struct spawn_request *r)
{
	struct srun *s = arg;

	FUZZ_CHECK(spawn_procs(r) > 0);
	if (s->refuses)
		return -EAGAIN;
	if (s->nspawned < TOKENS)
		s->spawned[s->nspawned++] = token;
	return 0;
}

static void on_abort(void *arg, uint32_t rank, int code, const char *text)
{
	struct srun *s = arg;

	FUZZ_CHECK(++s->aborts == 1 && text);
}

static void check_line(const char *text)
{
	for (; *text; text++)
		FUZZ_CHECK(*text >= ' ' && *text <= '~');
}

static void on_report(void *arg, const char *text)
{
	struct srun *s = arg;

	FUZZ_CHECK(++s->reports <= STEP_SERVICES_REPORTS_MAX && !s->aborts);
	check_line(text);
}

static void on_note(void *arg, const char *text)
{
	struct srun *s = arg;

	FUZZ_CHECK(++s->notes <= STEP_SERVICES_NOTES_MAX && !s->aborts);
	check_line(text);
}

static void on_ready(void *arg)
{
	struct srun *s = arg;

	FUZZ_CHECK(++s->readies == 1);
}

static int on_forward(void *arg, uint32_t token, const void *data, size_t len)
{
	struct srun *s = arg;
	enum control_type type;
	uint32_t origin;

	FUZZ_CHECK(!control_peek(data, len, &type, &origin));
	if (s->refuses)
		return -EPIPE;
	if (s->nforwarded < TOKENS)
		s->forwarded[s->nforwarded++] = token;
	return 0;
}

/* Texts of a message; they live until the event has ended. */
static char *text_of(struct fuzz_input *in, uint8_t max)
{
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u8(in) % max, &at);
	char *text = fuzz_copy(at, len, 1);

	return text;
}

/* A real spawn request, as the body of a message. */
static void add_spawn(struct buf *b)
{
	struct spawn_request *r = spawn_new();

	FUZZ_CHECK(r && !spawn_add_command(r) &&
		   !spawn_set_program(r, "a.out", 5) &&
		   !spawn_set_nprocs(r, 2) && !spawn_pack(b, r));
	spawn_free(r);
}

/* Adds a request about names. */
static void add_names(struct buf *b, struct fuzz_input *in)
{
	char key[2] = { (char)('a' + fuzz_u8(in) % 4) };
	struct names_item item = {
		.key = key, .value = "v", .len = 1, .from.nspace = "a",
		.ranks = "\1\0\0\0", .ranks_len = fuzz_u8(in) % 5,
	};
	const struct names_request r = {
		.op = 1 + fuzz_u8(in) % (NAMES_OPS - 1),
		.range = 1 + fuzz_u8(in) % (NAMES_RANGES - 1),
		.once = fuzz_u8(in) % 2, .wait = fuzz_u8(in) % 2,
		.timeout_ms = fuzz_u8(in), .items = &item, .count = 1,
	};

	FUZZ_CHECK(!names_pack_request(b, &r));
}

static void message(struct srun *s, struct fuzz_input *in, bool *link)
{
	struct control_msg msg = { .type = fuzz_u8(in) % CONTROL_TYPES };
	struct buf b, body;

	buf_init(&b, CONTROL_FRAME_MAX);
	buf_init(&body, CONTROL_BODY_MAX);
	msg.origin = fuzz_u8(in);
	msg.id = fuzz_u8(in);
	msg.rank = fuzz_u8(in);
	msg.code = (int32_t)fuzz_u8(in) - 3;
	msg.name = text_of(in, 4);
	msg.text = text_of(in, 8);
	if (msg.type == CONTROL_SPAWN)
		add_spawn(&body);
	if (msg.type == CONTROL_NAMES)
		add_names(&body, in);
	msg.body = body.data;
	msg.body_len = body.len;
	FUZZ_CHECK(!control_pack(&b, &msg));
	if (step_services_receive(s->launcher, link, b.data, b.len)) {
		*link = true;
		step_services_link_lost(s->launcher, link);
	}
	control_free(&msg);
	buf_free(&b);
	buf_free(&body);
}

static void raw(struct srun *s, struct fuzz_input *in, bool *link)
{
	const uint8_t *at;
	size_t len = fuzz_bytes(in, fuzz_u16(in) % FRAME_BYTES_MAX, &at);
	void *copy = fuzz_copy(at, len, 0);

	if (step_services_receive(s->launcher, link, copy, len)) {
		*link = true;
		step_services_link_lost(s->launcher, link);
	}
	free(copy);
}

static void forwarded(struct srun *s, struct fuzz_input *in)
{
	struct control_msg msg = { .type = CONTROL_REPLY };
	uint32_t i = fuzz_u8(in), token;
	const uint8_t *at;
	struct buf b;

	token = s->nforwarded ? s->forwarded[i % s->nforwarded] : i;
	if (fuzz_u8(in) % 2) {
		size_t len = fuzz_bytes(in, fuzz_u8(in), &at);

		step_services_forwarded(s->launcher, token, at, len);
		return;
	}
	buf_init(&b, CONTROL_FRAME_MAX);
	msg.id = token;
	FUZZ_CHECK(!control_pack(&b, &msg));
	step_services_forwarded(s->launcher, token, b.data, b.len);
	buf_free(&b);
}

static void event(struct srun *s, struct fuzz_input *in)
{
	uint8_t what = fuzz_u8(in);
	bool *link = &s->links[fuzz_u8(in) % LINKS];
	uint32_t i;

	switch (what % 9) {
	case 0:
	case 1:
	case 2:
		if (!*link)
			message(s, in, link);
		break;
	case 3:
		if (!*link)
			raw(s, in, link);
		break;
	case 4:
		*link = true;
		step_services_link_lost(s->launcher, link);
		break;
	case 5:
		i = fuzz_u8(in);
		step_services_spawned(s->launcher,
				 s->nspawned ? s->spawned[i % s->nspawned] : i,
				 (int)fuzz_u8(in) - 2, what > 127 ? NULL : "9.1");
		break;
	case 6:
		forwarded(s, in);
		break;
	case 7:
		s->now += fuzz_u8(in);
		FUZZ_CHECK(step_services_expire(s->launcher, s->now) > s->now);
		break;
	default:
		if (what > 200)
			step_services_parent_lost(s->launcher);
		s->refuses = !s->refuses;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step_services_ops ops = {
		.reply = on_reply, .spawn = on_spawn, .abort = on_abort,
		.report = on_report, .note = on_note, .started = is_odd,
		.ready = on_ready,
	};
	struct fuzz_input in = { data, size };
	struct srun s = { 0 };

	if (fuzz_u8(&in) % 2)
		ops.forward = on_forward;
	FUZZ_CHECK(!step_services_create(&s.launcher, &ops, &s, 0, NULL));
	while (in.left)
		event(&s, &in);
	step_services_destroy(s.launcher);
	return 0;
}
