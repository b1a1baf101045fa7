/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers on the command lines of floor and lookup. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A whole decimal number within these limits, both included, without sign or
 * blanks. False, with *number as it was, when it is not; that is said on standard
 * error.
 */
bool number_parse(const char *text, uint32_t low, uint32_t high,
		  uint32_t *number);
