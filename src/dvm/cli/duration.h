/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time limits as people write them: those of srun (minutes, M:S, H:M:S, D-H, D-H:M,
 * D-H:M:S), and numbers with units (s, m, h, d), the largest first: 90s, 1h30m, 2d.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* *seconds: up to max. False: the text is no time, or a longer one. */
bool duration_parse(const char *text, uint64_t max, uint64_t *seconds);
