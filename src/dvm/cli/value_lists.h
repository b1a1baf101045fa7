/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of values, and all combinations of one value from each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct value_list {
	char **texts;
	size_t count, cap;
};

struct value_lists {
	struct value_list *lists;
	size_t count, cap;
};

/* Begin a list; add a copy of a text to the last one. False: no memory. */
bool value_lists_begin(struct value_lists *v);
bool value_lists_add(struct value_lists *v, const char *text);
/*
 * Call `fn` for each combination, the last list fastest, until it returns false. None if a
 * list is empty. False: no memory.
 */
bool value_lists_combine(const struct value_lists *v,
			 bool (*fn)(void *arg, const char *const *values, size_t count),
			 void *arg);
void value_lists_free(struct value_lists *v);
