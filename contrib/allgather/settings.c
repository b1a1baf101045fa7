/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and checks what the environment says. */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/decimal.h"
#include "transport.h"

const char *setting_text(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

bool setting_on(const char *name)
{
	const char *text = setting_text(name);

	return text && strcmp(text, "0");
}

/* The text goes to all processes of the job, and to their users. */
int setting_wrong(char *why, const char *name, const char *text,
		  const char *wanted)
{
	snprintf(why, TRANSPORT_REASON_MAX, "%s=%.40s: %s is expected", name,
		 text, wanted);
	for (char *c = why; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = '?';
	return -EINVAL;
}

bool setting_parse(const char *text, int min, int max, int *out)
{
	uint32_t value;

	if (!decimal_u32(text, min, max, &value))
		return false;
	*out = (int)value;
	return true;
}

int setting_number(const char *name, int min, int max, int *out, char *why)
{
	const char *text = setting_text(name);
	char wanted[48];

	if (!text || setting_parse(text, min, max, out))
		return 0;
	snprintf(wanted, sizeof(wanted), "a number from %d to %d", min, max);
	return setting_wrong(why, name, text, wanted);
}
