/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of PMI2X_LEND, and the place of a rank as text. */
#include "lend/request.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SHOWN_MAX 40 /* bytes of a wrong word in a message */

static const struct {
	const char *word;
	enum lend_request request;
} words[] = {
	{ "", LEND_OFF },
	{ "off", LEND_OFF },
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

void lend_request_explain(const char *text, char out[LEND_TEXT_MAX])
{
	size_t len = strnlen(text, SHOWN_MAX + 1);
	char shown[SHOWN_MAX + 4];
	bool cut = len > SHOWN_MAX;

	len = cut ? SHOWN_MAX : len;
	for (size_t i = 0; i < len; i++)
		shown[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	strcpy(shown + len, cut ? "..." : "");
	snprintf(out, LEND_TEXT_MAX,
		 LEND_ENV "=%s is not a value of " LEND_ENV ": use report, report,all or off",
		 shown);
}

void lend_place_write(const struct lend_place *place, char out[LEND_TEXT_MAX])
{
	snprintf(out, LEND_TEXT_MAX, "%d:%u:%u:%u:%d", place->fd, place->slot,
		 place->ranks, place->rank, place->reports);
}

bool lend_place_read(const char *text, struct lend_place *out)
{
	int reports, end = -1;

	if (!text ||
	    sscanf(text, "%d:%u:%u:%u:%d%n", &out->fd, &out->slot, &out->ranks,
		   &out->rank, &reports, &end) != 5 ||
	    end < 0 || text[end])
		return false;
	out->reports = reports == 1;
	return out->fd >= 0 && out->slot < out->ranks;
}
