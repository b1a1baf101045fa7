/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the settings of the verbs transport from the environment. */
#include "verbs_port.h"

#include <string.h>

#include "settings.h"
#include "transport.h"

#define PREFIX "PMI2X_ALLGATHER_VERBS_"
#define PORT_MAX 255
#define GID_INDEX_MAX 65535
#define TIMEOUT_MAX 31
#define SERVICE_LEVEL_MAX 15
#define TRAFFIC_CLASS_MAX 255

/*
 * 4.096 us * 2^18 is 1.07 s; after seven tries, 8 s, the neighbour is given up.
 * Fabrics of thousands of nodes see acknowledgements late by tenths of seconds
 * when everybody starts at once, and subnet managers move routes in seconds:
 * much less breaks links that would recover, much more keeps a job waiting for a
 * dead node. The other numbers are in verbs_link.c.
 */
#define TIMEOUT_DEFAULT 18

static int read_device(struct verbs_settings *s, char *why)
{
	static const char name[] = PREFIX "DEVICE";
	const char *text = setting_text(name), *colon;
	size_t len;

	if (!text)
		return 0;
	colon = strchr(text, ':');
	len = colon ? (size_t)(colon - text) : strlen(text);
	if (!len || len >= sizeof(s->device) ||
	    (colon && !setting_parse(colon + 1, 1, PORT_MAX, &s->port)))
		return setting_wrong(why, name, text, "NAME or NAME:PORT");
	memcpy(s->device, text, len);
	s->device[len] = '\0';
	return 0;
}

int verbs_settings_read(struct verbs_settings *s, char *why)
{
	const struct {
		const char *name;
		int max;
		int *out;
	} numbers[] = {
		{ PREFIX "GID_INDEX", GID_INDEX_MAX, &s->gid_index },
		{ PREFIX "TIMEOUT", TIMEOUT_MAX, &s->timeout },
		{ PREFIX "SL", SERVICE_LEVEL_MAX, &s->service_level },
		{ PREFIX "TRAFFIC_CLASS", TRAFFIC_CLASS_MAX,
		  &s->traffic_class },
	};
	int rc;

	memset(s, 0, sizeof(*s));
	s->gid_index = -1;
	s->timeout = TIMEOUT_DEFAULT;
	rc = read_device(s, why);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && !rc; i++)
		rc = setting_number(numbers[i].name, 0, numbers[i].max,
				    numbers[i].out, why);
	return rc;
}
