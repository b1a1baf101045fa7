/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints and reads bytes in hexadecimal. */
#include "libutil/hex.h"

#include <errno.h>

void hex_print(const unsigned char *bytes, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	*out = '\0';
}

static int value_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int hex_decode(const char *text, size_t n, unsigned char *bytes)
{
	for (size_t i = 0; i < n; i++) {
		int high = value_of(text[2 * i]);
		int low = high < 0 ? -1 : value_of(text[2 * i + 1]);

		if (low < 0)
			return -EINVAL;
		bytes[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}
