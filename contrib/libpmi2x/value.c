/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of bytes that callers own. */
#include "value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int value_set(struct value *v, const void *data, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, data, len);
	copy[len] = '\0';
	free(v->data);
	v->data = copy;
	v->len = len;
	return 0;
}

void value_free(struct value *v)
{
	free(v->data);
	v->data = NULL;
	v->len = 0;
}

bool copy_text(char *to, size_t size, const char *from, size_t len)
{
	size_t n = len < size ? len : size - 1;

	if (n)
		memcpy(to, from, n);
	to[n] = '\0';
	return n == len;
}
