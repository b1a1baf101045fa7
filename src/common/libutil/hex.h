/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes as text, where nothing else travels: PMI values, the environment. Two lower-case digits a byte. */
#pragma once

#include <stddef.h>

/* `out` has 2 * n + 1 bytes. */
void hex_print(const unsigned char *bytes, size_t n, char *out);

/* The n bytes with which a text begins. 0, or -EINVAL: other than 2 * n digits. */
int hex_decode(const char *text, size_t n, unsigned char *bytes);
