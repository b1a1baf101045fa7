/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Vectors of strings, for exec. */
#include "strvec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes `word` over; NULL stands for no memory. */
static void take(struct strvec *w, char *word)
{
	char **items;

	if (word && !w->error) {
		items = realloc(w->items, (w->count + 2) * sizeof(*items));
		if (items) {
			w->items = items;
			items[w->count++] = word;
			items[w->count] = NULL;
			return;
		}
	}
	free(word);
	if (!w->error)
		w->error = -ENOMEM;
}

void strvec_add(struct strvec *w, const char *word)
{
	take(w, strdup(word));
}

void strvec_printf(struct strvec *w, const char *fmt, ...)
{
	char *word;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&word, fmt, ap) < 0)
		word = NULL;
	va_end(ap);
	take(w, word);
}

int strvec_end(struct strvec *w, char ***out)
{
	*out = w->error ? NULL : w->items;
	if (w->error)
		strvec_free(w->items);
	return w->error;
}

void strvec_free(char **items)
{
	for (char **i = items; i && *i; i++)
		free(*i);
	free(items);
}
