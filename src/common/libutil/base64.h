/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes as text of the alphabet of RFC 4648, with padding: four characters for three bytes. */
#pragma once

#include <stddef.h>

#define BASE64_LEN(n) (((n) + 2) / 3 * 4) /* characters for n bytes */

/* `out` has BASE64_LEN(n) bytes; no NUL is added. */
void base64_encode(const void *data, size_t n, char *out);

/*
 * `out` has len / 4 * 3 bytes. How many of these were decoded; SIZE_MAX: the text is not
 * what base64_encode makes.
 */
size_t base64_decode(const char *text, size_t len, void *out);
