/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-1 text: framing and decoding; what can be written reads back the same. */
#include "fuzz.h"

#include "fuzz-message.h"
#include "libpmi/group.h"

#define RANKS 300

/* A text that is taken for a group is one: ranks of the step, in order, each once. */
static void look_at_group(const struct pmi_message *m)
{
	const char *text = pmi_message_str(m, "group");
	char why[PMI_GROUP_WHY_MAX] = "";
	struct pmi_group g;

	if (!text)
		return;
	FUZZ_CHECK(!pmi_group_read(&g, text, RANKS, why) == !why[0]);
	for (uint32_t i = 0; i < g.count; i++)
		FUZZ_CHECK(g.ranks[i] < RANKS &&
			   (!i || g.ranks[i - 1] < g.ranks[i]));
	pmi_group_free(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	long len = pmi1_frame((const char *)data, size);
	struct pmi_message m;
	char *copy;

	if (len <= 0)
		return 0;
	FUZZ_CHECK((size_t)len <= size);
	FUZZ_CHECK(pmi1_frame((const char *)data, len - 1) <= 0);
	copy = fuzz_copy(data, len, 0);
	pmi_message_init(&m);
	if (!pmi1_decode(copy, len, &m)) {
		fuzz_message_look(&m, copy, len);
		look_at_group(&m);
		if (!m.mcmd)
			fuzz_message_rewrite(&m, PMI_PROTOCOL_1);
		fuzz_message_rewrite(&m, PMI_PROTOCOL_2);
	}
	pmi_message_free(&m);
	free(copy);
	return 0;
}
