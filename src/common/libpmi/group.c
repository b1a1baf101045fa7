/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of ranks out of the text of PMI-1 1.2. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/group.h"
#include "libutil/decimal.h"

/* A tag and nothing behind it. */
static int read_tag(struct pmi_group *g, const char *at,
		    char why[PMI_GROUP_WHY_MAX])
{
	int tag = 0;
	bool read = decimal_int(&at, &tag);

	g->tag = tag;
	if (read && !*at && (tag >= 0 || tag == INT_MIN))
		return 0;
	snprintf(why, PMI_GROUP_WHY_MAX, "the tag is not a number from 0 to %d",
		 INT_MAX);
	return -EINVAL;
}

static uint32_t count_commas(const char *at, const char *end)
{
	uint32_t n = 0;

	while ((at = memchr(at, ',', end - at))) {
		n++;
		at++;
	}
	return n;
}

/* `end` is the colon behind the last rank. */
static int read_ranks(struct pmi_group *g, const char *at, const char *end,
		      uint32_t nranks, char why[PMI_GROUP_WHY_MAX])
{
	uint64_t rank;

	for (g->count = 0; at < end; at++) {
		if (!decimal_take(&at, nranks - 1, &rank) ||
		    (at < end && (*at != ',' || at + 1 == end))) {
			snprintf(why, PMI_GROUP_WHY_MAX,
				 "not a list of ranks from 0 to %u",
				 nranks - 1);
			return -EINVAL;
		}
		g->ranks[g->count++] = rank;
	}
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* In order; most come so. */
static int sort_ranks(struct pmi_group *g, char why[PMI_GROUP_WHY_MAX])
{
	bool sorted = true;

	for (uint32_t i = 1; i < g->count; i++)
		sorted = sorted && g->ranks[i - 1] < g->ranks[i];
	if (sorted)
		return 0;
	qsort(g->ranks, g->count, sizeof(*g->ranks), by_rank);
	for (uint32_t i = 1; i < g->count; i++)
		if (g->ranks[i - 1] == g->ranks[i]) {
			snprintf(why, PMI_GROUP_WHY_MAX,
				 "rank %u is named twice", g->ranks[i]);
			return -EINVAL;
		}
	return 0;
}

static int read_list(struct pmi_group *g, const char *text, const char *end,
		     uint32_t nranks, char why[PMI_GROUP_WHY_MAX])
{
	uint32_t count = count_commas(text, end) + 1;
	int rc;

	g->form = PMI_GROUP_LIST;
	if (text == end || count > nranks) {
		snprintf(why, PMI_GROUP_WHY_MAX, "the group has %s ranks",
			 text == end ? "no" : "too many");
		return -EINVAL;
	}
	g->ranks = malloc(count * sizeof(*g->ranks));
	if (!g->ranks)
		return -ENOMEM;
	rc = read_ranks(g, text, end, nranks, why);
	return rc ? rc : sort_ranks(g, why);
}

static bool is_word(const char *text, const char *end, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(end - text) == len && !memcmp(text, word, len);
}

static int read_form(struct pmi_group *g, const char *text, const char *end,
		     uint32_t nranks, char why[PMI_GROUP_WHY_MAX])
{
	if (is_word(text, end, "WORLD"))
		g->form = PMI_GROUP_WORLD;
	else if (is_word(text, end, "NODE"))
		g->form = PMI_GROUP_NODE;
	else
		return read_list(g, text, end, nranks, why);
	return 0;
}

int pmi_group_read(struct pmi_group *g, const char *text, uint32_t nranks,
		   char why[PMI_GROUP_WHY_MAX])
{
	const char *colon = strchr(text, ':');
	int rc = -EINVAL;

	memset(g, 0, sizeof(*g));
	if (!colon)
		snprintf(why, PMI_GROUP_WHY_MAX, "the group has no tag");
	else if (!(rc = read_tag(g, colon + 1, why)))
		rc = read_form(g, text, colon, nranks, why);
	if (rc)
		pmi_group_free(g);
	return rc;
}

int pmi_group_fill(struct pmi_group *g, uint32_t nranks)
{
	g->ranks = malloc(nranks * sizeof(*g->ranks));
	if (!g->ranks)
		return -ENOMEM;
	for (g->count = 0; g->count < nranks; g->count++)
		g->ranks[g->count] = g->count;
	return 0;
}

void pmi_group_free(struct pmi_group *g)
{
	free(g->ranks);
	g->ranks = NULL;
	g->count = 0;
}
