/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of PMI2X_LEND, and the place of a rank as text. */
#include "lend/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FACTOR_DEFAULT 2
#define FACTOR_MIN 2
#define FACTOR_MAX 8
#define SHOWN_MAX 40 /* bytes of a wrong word in a message */

static const struct {
	const char *word;
	enum lend_request request;
} words[] = {
	{ "", LEND_OFF },
	{ "off", LEND_OFF },
	{ "on", LEND_ON },
	{ "report", LEND_REPORT },
	{ "report,all", LEND_REPORT_ALL },
};

bool lend_request_parse(const char *text, enum lend_request *out)
{
	*out = LEND_OFF;
	if (!text)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(text, words[i].word)) {
			*out = words[i].request;
			return true;
		}
	return false;
}

bool lend_factor_parse(const char *text, uint32_t *out)
{
	*out = FACTOR_DEFAULT;
	if (!text || !*text)
		return true;
	if (text[0] < '0' + FACTOR_MIN || text[0] > '0' + FACTOR_MAX || text[1])
		return false;
	*out = (uint32_t)(text[0] - '0');
	return true;
}

/* The beginning of a wrong word, in printable letters. */
static void show(const char *text, char shown[SHOWN_MAX + 4])
{
	size_t len = strnlen(text, SHOWN_MAX + 1);
	bool cut = len > SHOWN_MAX;

	len = cut ? SHOWN_MAX : len;
	for (size_t i = 0; i < len; i++)
		shown[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	strcpy(shown + len, cut ? "..." : "");
}

void lend_request_explain(const char *text, char out[LEND_TEXT_MAX])
{
	char shown[SHOWN_MAX + 4];

	show(text, shown);
	snprintf(out, LEND_TEXT_MAX,
		 LEND_ENV "=%s is not a value of " LEND_ENV ": use on, report, report,all or off",
		 shown);
}

void lend_factor_explain(const char *text, char out[LEND_TEXT_MAX])
{
	char shown[SHOWN_MAX + 4];

	show(text, shown);
	snprintf(out, LEND_TEXT_MAX,
		 LEND_FACTOR_ENV "=%s is not a number of threads for each core: use 2 to 8",
		 shown);
}

void lend_place_write(const struct lend_place *place, char out[LEND_TEXT_MAX])
{
	snprintf(out, LEND_TEXT_MAX, "%d:%u:%u:%u:%u:%u:%u:%d:%d", place->fd, place->slot,
		 place->ranks, place->rank, place->cores, place->factor, place->mode,
		 place->reports, place->explains);
}

bool lend_place_read(const char *text, struct lend_place *out)
{
	int reports, explains, end = -1;
	unsigned int mode;

	if (!text ||
	    sscanf(text, "%d:%u:%u:%u:%u:%u:%u:%d:%d%n", &out->fd, &out->slot, &out->ranks,
		   &out->rank, &out->cores, &out->factor, &mode, &reports, &explains,
		   &end) != 9 ||
	    end < 0 || text[end] || mode > LEND_NAPS)
		return false;
	out->mode = (enum lend_mode)mode;
	out->reports = reports == 1;
	out->explains = explains == 1;
	return out->fd >= 0 && out->slot < out->ranks;
}
