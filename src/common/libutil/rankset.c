/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats lists of ranks for messages. */
#include "libutil/rankset.h"

#include <stdio.h>
#include <string.h>

#define ELLIPSIS ", ..."

/* The last index of the run of consecutive ranks that starts at `i`. */
static size_t run_end(const uint32_t *ranks, size_t count, size_t i)
{
	while (i + 1 < count && ranks[i + 1] == ranks[i] + 1)
		i++;
	return i;
}

const char *rankset_format(const uint32_t *ranks, size_t count, char *out,
			   size_t size)
{
	size_t used = 0;
	char item[32];

	if (size)
		out[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		size_t last = run_end(ranks, count, i);
		const char *comma = used ? ", " : "";
		int n;

		if (last == i)
			n = snprintf(item, sizeof(item), "%s%u", comma, ranks[i]);
		else
			n = snprintf(item, sizeof(item), "%s%u-%u", comma,
				     ranks[i], ranks[last]);
		if (used + n + sizeof(ELLIPSIS) > size) {
			if (used + sizeof(ELLIPSIS) <= size)
				strcpy(out + used, ELLIPSIS);
			break;
		}
		strcpy(out + used, item);
		used += n;
		i = last;
	}
	return out;
}
