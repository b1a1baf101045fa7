/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of nodes about themselves, and what srun makes of them for people and tools. */
#include "fuzz.h"

#include "libpmi/status.h"

#define NODES 3

static const char *name_of(void *arg, uint32_t position)
{
	return "n1";
}

static void look(const struct step_status *s)
{
	char text[STATUS_TEXT_MAX];
	struct stalled what;
	uint32_t age_s;
	struct buf b;

	for (int kind = 0; kind < COLL_KINDS; kind++)
		if (step_status_stalled(s, kind, &what))
			FUZZ_CHECK(strlen(step_status_text(s, &what, text)) <
				   sizeof(text));
	if (step_status_key(s, 1, text, &age_s))
		FUZZ_CHECK(age_s && strlen(text) < sizeof(text));
	buf_init(&b, STATUS_ANSWER_MAX);
	FUZZ_CHECK(!step_status_pack(s, "1.0", &b));
	buf_free(&b);
}

/* A report of a node has a byte with its position and two with its length before it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct step_status *s;

	if (step_status_create(&s, NODES, name_of, NULL))
		return 0;
	while (in.left) {
		uint32_t position = fuzz_u8(&in) % (NODES + 1);
		const uint8_t *at;
		size_t len = fuzz_bytes(&in, fuzz_u16(&in), &at);
		uint8_t *copy = fuzz_copy(at, len, 0);

		step_status_add(s, position, copy, len);
		free(copy);
	}
	look(s);
	step_status_destroy(s);
	return 0;
}
