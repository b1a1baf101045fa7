/* SPDX-License-Identifier: BSD-3-Clause */
/* Combinations of values: value_lists.h. */
#include "dvm/cli/value_lists.h"

#include <stdlib.h>
#include <string.h>

#include "libutil/array.h"

bool value_lists_begin(struct value_lists *v)
{
	if (array_grow(&v->lists, v->count, &v->cap, sizeof(*v->lists)))
		return false;
	v->lists[v->count++] = (struct value_list){ 0 };
	return true;
}

bool value_lists_add(struct value_lists *v, const char *text)
{
	struct value_list *l = &v->lists[v->count - 1];
	char *copy;

	if (array_grow(&l->texts, l->count, &l->cap, sizeof(*l->texts)))
		return false;
	copy = strdup(text);
	if (copy)
		l->texts[l->count++] = copy;
	return copy;
}

/* The next combination. False: that was the last. */
static bool advance(const struct value_lists *v, size_t *at)
{
	for (size_t i = v->count; i-- > 0; at[i] = 0)
		if (++at[i] < v->lists[i].count)
			return true;
	return false;
}

static bool any_is_empty(const struct value_lists *v)
{
	for (size_t i = 0; i < v->count; i++)
		if (!v->lists[i].count)
			return true;
	return !v->count;
}

bool value_lists_combine(const struct value_lists *v,
			 bool (*fn)(void *arg, const char *const *values, size_t count),
			 void *arg)
{
	const char **values = calloc(v->count + 1, sizeof(*values));
	size_t *at = calloc(v->count + 1, sizeof(*at));
	bool ok = values && at, more = ok && !any_is_empty(v);

	while (more) {
		for (size_t i = 0; i < v->count; i++)
			values[i] = v->lists[i].texts[at[i]];
		more = fn(arg, values, v->count) && advance(v, at);
	}
	free(values);
	free(at);
	return ok;
}

void value_lists_free(struct value_lists *v)
{
	for (size_t i = 0; i < v->count; i++) {
		for (size_t n = 0; n < v->lists[i].count; n++)
			free(v->lists[i].texts[n]);
		free(v->lists[i].texts);
	}
	free(v->lists);
	*v = (struct value_lists){ 0 };
}
