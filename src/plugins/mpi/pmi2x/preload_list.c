/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A path in LD_PRELOAD, beside those of the user. */
#include "preload_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEPARATORS ": "

char *preload_list_without(const char *list, const char *path)
{
	char *kept = malloc(strlen(list) + 1), *end = kept;
	size_t len;

	if (!kept)
		return NULL;
	for (list += strspn(list, SEPARATORS); *list;
	     list += len, list += strspn(list, SEPARATORS)) {
		len = strcspn(list, SEPARATORS);
		if (len == strlen(path) && !strncmp(list, path, len))
			continue;
		if (end > kept)
			*end++ = ':';
		memcpy(end, list, len);
		end += len;
	}
	*end = '\0';
	return kept;
}

char *preload_list_with(const char *list, const char *path)
{
	char *others = preload_list_without(list ? list : "", path), *both = NULL;

	if (!others)
		return NULL;
	if (asprintf(&both, "%s%s%s", others, *others ? ":" : "", path) < 0)
		both = NULL;
	free(others);
	return both;
}
