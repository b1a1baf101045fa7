/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments in which values replace words: {} is all values with blanks between them, {1}
 * is the first of several, and {#} the number of the task.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct template_values {
	const char *const *values;
	size_t count; /* with one, {1} is no such word */
	uint64_t number;
};

/* True: the text has a word that a value replaces; {#} is none. */
bool template_has_value(const char *text, const struct template_values *v);
/* The text with values in place of these words, to be freed; NULL: no memory. */
char *template_fill(const char *text, const struct template_values *v);
