/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A NULL-terminated vector of strings that is built word by word. */
#ifndef PMI2X_WORDS_H
#define PMI2X_WORDS_H

#include <stddef.h>

struct words {
	char **items;
	size_t count;
	int error; /* the first; later additions do nothing */
};

void words_add(struct words *w, const char *word);
void words_printf(struct words *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The vector, or NULL and the error after freeing what there was. */
int words_end(struct words *w, char ***out);
void words_free(char **items); /* NULL is allowed */

#endif
