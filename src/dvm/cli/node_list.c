/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of nodes: node_list.h. */
#include "dvm/cli/node_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dvm/cli/number_list.h"
#include "dvm/core/ledger.h"

#define NAME_SIZE 256

/* A part of the text that is between two commas outside of brackets. */
struct piece {
	const char *text;
	int len;
};

static bool add(json_t *names, const char *name)
{
	return json_array_size(names) < LEDGER_NODES_MAX &&
	       !json_array_append_new(names, json_string(name));
}

static bool is_name(const char *text, int len)
{
	return len > 0 && len < NAME_SIZE && (int)strcspn(text, "[], \t\n") >= len;
}

/* The names of a range, between what is before and behind the brackets. */
static bool add_range(json_t *names, struct piece before, const struct number_range *r,
		      struct piece behind)
{
	char name[2 * NAME_SIZE + 32];

	for (uint64_t n = r->first; n <= r->last; n += r->step) {
		snprintf(name, sizeof(name), "%.*s%0*" PRIu64 "%.*s", before.len, before.text,
			 r->width, n, behind.len, behind.text);
		if (!add(names, name))
			return false;
	}
	return true;
}

static bool add_bracketed(json_t *names, struct piece p, const char *open, const char *close)
{
	const struct piece before = { p.text, (int)(open - p.text) };
	const struct piece behind = { close + 1, (int)(p.text + p.len - close - 1) };
	char ranges[4096];
	const char *at = ranges;
	struct number_range r;

	if (!is_name(before.text, before.len) || close - open - 1 >= (int)sizeof(ranges) ||
	    (behind.len && !is_name(behind.text, behind.len)))
		return false;
	snprintf(ranges, sizeof(ranges), "%.*s", (int)(close - open - 1), open + 1);
	do {
		if (!number_list_take(&at, UINT32_MAX, &r) || !add_range(names, before, &r, behind))
			return false;
	} while (*at);
	return true;
}

static bool add_piece(json_t *names, struct piece p)
{
	const char *open = memchr(p.text, '[', (size_t)p.len);
	const char *close = open ? memchr(open, ']', (size_t)(p.text + p.len - open)) : NULL;
	char name[NAME_SIZE];

	if (open)
		return close && add_bracketed(names, p, open, close);
	if (!is_name(p.text, p.len))
		return false;
	snprintf(name, sizeof(name), "%.*s", p.len, p.text);
	return add(names, name);
}

bool node_list_expand(const char *text, json_t *names)
{
	for (;; text++) {
		int len = 0;

		for (bool inside = false; text[len] && (inside || text[len] != ','); len++)
			inside = text[len] == '[' || (inside && text[len] != ']');
		if (!add_piece(names, (struct piece){ text, len }))
			return false;
		text += len;
		if (!*text)
			return true;
	}
}
