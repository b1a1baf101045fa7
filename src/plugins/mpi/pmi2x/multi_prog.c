/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads "0,2-3 program argument ..." as Slurm does. srun has checked a file that came
 * through it, but slurmstepd takes launch requests of any program of the user's.
 */
#include "multi_prog.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NO_APP UINT32_MAX
#define BLANKS " \t\r\v\f"

struct table {
	uint32_t *apps;
	uint32_t ranks;
	uint64_t budget; /* of ranges, and of ranks in them */
};

/* srun lets a file name each rank once, and all of them once more by an asterisk. */
static uint64_t budget_of(uint32_t ranks)
{
	return 4 * (uint64_t)ranks + 4;
}

static void take_range(struct table *t, uint32_t app, uint64_t first, uint64_t last)
{
	for (uint64_t rank = first; rank <= last && rank < t->ranks && t->budget;
	     rank++, t->budget--)
		if (t->apps[rank] == NO_APP)
			t->apps[rank] = app;
	t->budget -= t->budget > 0;
}

static uint64_t take_number(const char **text)
{
	char *end;
	uint64_t number;

	if (!isdigit((unsigned char)**text))
		return 0;
	number = strtoul(*text, &end, 10);
	*text = end;
	return number;
}

/* At most `len` bytes: "5", "2-3"; anything else is no range. */
static void take_token(struct table *t, uint32_t app, const char *text, size_t len)
{
	const char *end = text + len;
	uint64_t first = take_number(&text), last = first;

	if (*text == '-') {
		text++;
		last = take_number(&text);
	}
	if (text == end)
		take_range(t, app, first, last);
}

static void take_ranges(struct table *t, uint32_t app, const char *text)
{
	size_t whole = strcspn(text, BLANKS "\n"), len;

	if (whole == 1 && *text == '*')
		take_range(t, app, 0, UINT32_MAX);
	for (const char *end = text + whole; text < end && t->budget; text += len + 1) {
		len = strcspn(text, "," BLANKS "\n");
		if (len)
			take_token(t, app, text, len);
	}
}

static const char *line_end(const char *text)
{
	return text + strcspn(text, "\n");
}

/* A backslash at the end of a line: the next one belongs to it. */
static const char *next_line(const char *text)
{
	const char *end = line_end(text);

	while (*end && end > text && end[-1] == '\\') {
		text = end + 1;
		end = line_end(text);
	}
	return *end ? end + 1 : end;
}

bool multi_prog_read(uint32_t apps[], uint32_t ranks, const char *text)
{
	struct table t = { apps, ranks, budget_of(ranks) };
	uint32_t app = 0;

	memset(apps, 0xff, ranks * sizeof(*apps)); /* NO_APP */
	for (; *text && t.budget; text = next_line(text)) {
		text += strspn(text, BLANKS);
		if (*text != '#' && *text != '\n' && *text)
			take_ranges(&t, app++, text);
	}
	for (uint32_t i = 0; i < ranks; i++)
		if (apps[i] == NO_APP)
			return false;
	return t.budget > 0;
}
