/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow by one item at a time. */
#include "libutil/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ALLOCATION 8 /* items */

int array_grow(void *array, size_t count, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : FIRST_ALLOCATION;
	void *items;

	if (count < *cap)
		return 0;
	memcpy(&items, array, sizeof(items));
	items = realloc(items, more * size);
	if (!items)
		return -ENOMEM;
	memcpy(array, &items, sizeof(items));
	*cap = more;
	return 0;
}
