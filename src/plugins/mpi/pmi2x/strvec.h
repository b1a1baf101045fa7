/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A NULL-terminated vector of strings that is built word by word. */
#pragma once

#include <stddef.h>

struct strvec {
	char **items;
	size_t count;
	int error; /* the first; later additions do nothing */
};

void strvec_add(struct strvec *w, const char *word);
void strvec_printf(struct strvec *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The vector, or NULL and the error after freeing what there was. */
int strvec_end(struct strvec *w, char ***out);
void strvec_free(char **items); /* NULL is allowed */
