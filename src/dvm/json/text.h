/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes as JSON, which has text only: each byte travels as the character of its number. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A new reference, or NULL: no memory. */
json_t *text_of_bytes(const char *data, size_t len);
/*
 * The bytes of such a text; *data is to be freed. False: not such a text, longer than
 * DVM_INPUT_MAX, or no memory.
 */
bool text_take_bytes(json_t *text, char **data, size_t *len);
