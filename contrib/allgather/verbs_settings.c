/* SPDX-License-Identifier: BSD-3-Clause */
/* What the environment says about the verbs transport. */
#include "verbs_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int wrong(char *why, const char *name, const char *text,
		 const char *wanted)
{
	snprintf(why, TRANSPORT_REASON_MAX, "%s=%.40s: %s is expected", name,
		 text, wanted);
	return -EINVAL;
}

/* A decimal number from 0 to max, and nothing else. */
static bool take_number(const char *text, long max, int *out)
{
	char *end;
	long value;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtol(text, &end, 10);
	*out = (int)value;
	return !errno && !*end && value <= max;
}

static int read_number(const char *name, long max, int *out, char *why)
{
	const char *text = getenv(name);
	char wanted[40];

	if (!text || take_number(text, max, out))
		return 0;
	snprintf(wanted, sizeof(wanted), "a number from 0 to %ld", max);
	return wrong(why, name, text, wanted);
}

static int read_device(struct verbs_settings *s, char *why)
{
	static const char name[] = PREFIX "DEVICE";
	const char *text = getenv(name), *colon;
	size_t len;

	if (!text)
		return 0;
	colon = strchr(text, ':');
	len = colon ? (size_t)(colon - text) : strlen(text);
	if (!len || len >= sizeof(s->device) ||
	    (colon && (!take_number(colon + 1, PORT_MAX, &s->port) ||
		       !s->port)))
		return wrong(why, name, text, "NAME or NAME:PORT");
	memcpy(s->device, text, len);
	s->device[len] = '\0';
	return 0;
}

int verbs_settings_read(struct verbs_settings *s, char *why)
{
	const struct {
		const char *name;
		long max;
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
		rc = read_number(numbers[i].name, numbers[i].max,
				 numbers[i].out, why);
	return rc;
}
