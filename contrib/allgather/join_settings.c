/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the settings for joining from the environment. */
#include <string.h>

#include "join.h"
#include "settings.h"

#define TRANSPORT "PMI2X_ALLGATHER_TRANSPORT"

/* ---- the list of transports ---- */

static bool is_name(const char *at, size_t len, const char *name)
{
	return len == strlen(name) && memcmp(at, name, len) == 0;
}

static bool is_known(const char *at, size_t len)
{
	for (int i = 0; transport_names[i]; i++)
		if (is_name(at, len, transport_names[i]))
			return true;
	return is_name(at, len, JOIN_PMI);
}

static bool all_known(const char *list)
{
	do {
		size_t len = strcspn(list, ",");

		if (!is_known(list, len))
			return false;
		list += len;
	} while (*list++);
	return true;
}

static void refuse_list(const char *list, char *why)
{
	char wanted[64] = "one or more of ";

	for (int i = 0; transport_names[i]; i++) {
		strcat(wanted, transport_names[i]);
		strcat(wanted, ",");
	}
	strcat(wanted, JOIN_PMI);
	setting_wrong(why, TRANSPORT, list, wanted);
}

bool join_allows(const struct join *j, const char *name)
{
	const char *at = j->allowed;

	while (at && *at) {
		size_t len = strcspn(at, ",");

		if (is_name(at, len, name))
			return true;
		at += len + (at[len] == ',');
	}
	return !j->allowed;
}

/* ---- all of it ---- */

static int64_t read_seconds(const char *name, int preset, char *why)
{
	int seconds = preset;

	setting_number(name, 1, SETTING_SECONDS_MAX, &seconds, why);
	return seconds * INT64_C(1000);
}

void join_settings(struct join *j)
{
	const char *named = setting_text(TRANSPORT);

	j->connect_ms = read_seconds("PMI2X_ALLGATHER_CONNECT_TIMEOUT",
				     JOIN_CONNECT_S, j->wrong);
	j->ring->stall_ms = read_seconds("PMI2X_ALLGATHER_TIMEOUT",
					 RING_STALL_S, j->wrong);
	j->allowed = named ? named : j->ring->use.allowed;
	if (named && !all_known(named))
		refuse_list(named, j->wrong);
}
