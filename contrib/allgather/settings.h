/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and numbers from the environment. A value that is invalid is an error,
 * never the preset: -EINVAL, and `why` (TRANSPORT_REASON_MAX bytes) names the
 * variable, the value and what is expected. An empty one is as none.
 */
#pragma once

#include <stdbool.h>

#define SETTING_SECONDS_MAX 1000000 /* eleven days */

/* NULL: not set, or empty. */
const char *setting_text(const char *name);
/* Neither empty nor 0. */
bool setting_on(const char *name);

/*
 * A decimal number from min (0 or more) to max. *out stays when `name` is not set,
 * or wrong.
 */
int setting_number(const char *name, int min, int max, int *out, char *why);

/* As above, for text that is part of a setting: false when it is no such number. */
bool setting_parse(const char *text, int min, int max, int *out);
/* -EINVAL, and the text for it. */
int setting_wrong(char *why, const char *name, const char *text,
		  const char *wanted);
