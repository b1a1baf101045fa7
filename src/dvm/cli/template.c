/* SPDX-License-Identifier: BSD-3-Clause */
/* Values in place of words: template.h. */
#include "dvm/cli/template.h"

#include "libutil/buf.h"
#include "libutil/decimal.h"

enum word { WORD_NONE, WORD_ALL, WORD_ONE, WORD_NUMBER };

/* The word at *at, which moves behind it; *index: of the value of WORD_ONE. */
static enum word take_word(const char **at, const struct template_values *v, size_t *index)
{
	const char *c = *at + 1;
	enum word word = WORD_ALL;
	uint64_t n;

	if (**at != '{')
		return WORD_NONE;
	if (*c == '#') {
		word = WORD_NUMBER;
		c++;
	} else if (*c != '}') {
		if (v->count < 2 || !decimal_take(&c, v->count, &n) || !n)
			return WORD_NONE;
		word = WORD_ONE;
		*index = (size_t)n - 1;
	}
	if (*c != '}')
		return WORD_NONE;
	*at = c + 1;
	return word;
}

bool template_has_value(const char *text, const struct template_values *v)
{
	enum word word;
	size_t index;

	while (*text) {
		word = take_word(&text, v, &index);
		if (word == WORD_ALL || word == WORD_ONE)
			return true;
		text += word == WORD_NONE;
	}
	return false;
}

static int put_all(struct buf *b, const struct template_values *v)
{
	int rc = 0;

	for (size_t i = 0; i < v->count; i++)
		rc |= (i ? buf_puts(b, " ") : 0) | buf_puts(b, v->values[i]);
	return rc;
}

char *template_fill(const char *text, const struct template_values *v)
{
	struct buf b;
	size_t index;
	int rc = 0;

	buf_init(&b, SIZE_MAX / 2);
	while (*text && !rc)
		switch (take_word(&text, v, &index)) {
		case WORD_NONE: rc = buf_append(&b, text++, 1); break;
		case WORD_ALL: rc = put_all(&b, v); break;
		case WORD_ONE: rc = buf_puts(&b, v->values[index]); break;
		case WORD_NUMBER:
			rc = buf_printf(&b, "%llu", (unsigned long long)v->number);
			break;
		}
	if (!rc && !buf_append(&b, "", 1))
		return b.data;
	buf_free(&b);
	return NULL;
}
