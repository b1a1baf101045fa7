/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spawn requests out of PMI-2, PMI-1 and the wire between agents and srun; what
 * is accepted can be packed, and what is packed reads back the same.
 */
#include "fuzz.h"

#include "libpmi/control.h"
#include "libpmi/spawn.h"

static void pack(const struct spawn_request *s, struct buf *b)
{
	buf_init(b, CONTROL_BODY_MAX);
	FUZZ_CHECK(!spawn_pack(b, s));
}

static void survives_the_wire(const struct spawn_request *s)
{
	struct spawn_request *again;
	struct buf first, second;
	struct cursor c;

	pack(s, &first);
	cursor_init(&c, first.data, first.len);
	FUZZ_CHECK(!spawn_unpack(&c, &again) && cursor_done(&c));
	pack(again, &second);
	FUZZ_CHECK(first.len == second.len &&
		   !memcmp(first.data, second.data, first.len));
	FUZZ_CHECK(spawn_procs(s) == spawn_procs(again));
	for (uint32_t i = 0; i < s->ncommands; i++)
		spawn_info(&s->commands[i], "wdir");
	spawn_free(again);
	buf_free(&first);
	buf_free(&second);
}

static void finish(struct spawn_request *s)
{
	survives_the_wire(s);
	spawn_free(s);
}

/* Without its six digits, which are made here. */
static void from_pmi2(struct fuzz_input *in)
{
	size_t len = in->left + PMI2_HEADER_LEN;
	char *copy = fuzz_copy(NULL, 0, len);
	struct spawn_request *s;
	struct pmi_message m;
	const char *what = NULL;

	memcpy(copy + PMI2_HEADER_LEN, in->at, in->left);
	pmi_message_init(&m);
	if (!pmi2_decode(copy, len, &m)) {
		if (!spawn_from_pmi2(&m, &s, &what))
			finish(s);
		else
			FUZZ_CHECK(what);
	}
	pmi_message_free(&m);
	free(copy);
}

static void from_pmi1(struct fuzz_input *in)
{
	struct spawn_request *s = NULL;
	struct pmi_message m;
	const char *what;
	long len;
	int rc = 1;

	pmi_message_init(&m);
	while (rc == 1 && (len = pmi1_frame((const char *)in->at, in->left)) > 0) {
		char *copy = fuzz_copy(in->at, len, 0);

		in->at += len;
		in->left -= len;
		rc = pmi1_decode(copy, len, &m) ? -1 :
			spawn_add_pmi1(&m, &s, &what);
		FUZZ_CHECK(rc >= 0 || rc == -1 || !s);
		free(copy);
	}
	if (rc == 0)
		survives_the_wire(s);
	spawn_free(s);
	pmi_message_free(&m);
}

static void from_wire(struct fuzz_input *in)
{
	struct spawn_request *s;
	struct cursor c;

	cursor_init(&c, in->at, in->left);
	if (!spawn_unpack(&c, &s))
		finish(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };

	switch (fuzz_u8(&in) % 3) {
	case 0:
		from_pmi2(&in);
		break;
	case 1:
		from_pmi1(&in);
		break;
	default:
		from_wire(&in);
	}
	return 0;
}
