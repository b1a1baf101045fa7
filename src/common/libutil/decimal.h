/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers as they are written in settings, options and messages. All of `text` must
 * be decimal digits that make a number from `min` to `max`, both included: no sign,
 * blank or suffix, which strtoul would take or leave to its caller to find. False
 * otherwise, with *out as it was. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool decimal_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);
bool decimal_u32(const char *text, uint32_t min, uint32_t max, uint32_t *out);

/*
 * The digits at the start of *at, up to what is none: a number up to `max`. Moves *at
 * behind them. False, and nothing has changed: there is none, or it is larger.
 */
bool decimal_take(const char **at, uint64_t max, uint64_t *out);
/* As above, for an int, which may have a minus. */
bool decimal_int(const char **at, int *out);
