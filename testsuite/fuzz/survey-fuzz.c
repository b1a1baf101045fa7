/* SPDX-License-Identifier: BSD-3-Clause */
/* States of nodes, and what srun makes of them for people and tools. */
#include "fuzz.h"

#include "libpmi/survey.h"

#define NODES 3

static const char *name_of(void *arg, uint32_t position)
{
	return "n\"1";
}

static void look(const struct survey *s)
{
	char text[SURVEY_TEXT_MAX];
	struct stalled what;
	struct buf json;

	for (int kind = 0; kind < COLL_KINDS; kind++)
		if (survey_stalled(s, kind, &what))
			FUZZ_CHECK(strlen(survey_text(s, &what, text)) <
				   sizeof(text));
	buf_init(&json, SURVEY_JSON_MAX);
	if (!survey_json(s, "1.0", &json))
		FUZZ_CHECK(json.data[json.len - 1] == '\n');
	buf_free(&json);
}

/* Each state has a byte with its position and two with its length before it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct survey *s;

	if (survey_create(&s, NODES, name_of, NULL))
		return 0;
	while (in.left) {
		uint32_t position = fuzz_u8(&in) % (NODES + 1);
		const uint8_t *at;
		size_t len = fuzz_bytes(&in, fuzz_u16(&in), &at);
		uint8_t *copy = fuzz_copy(at, len, 0);

		survey_add(s, position, copy, len);
		free(copy);
	}
	look(s);
	survey_destroy(s);
	return 0;
}
