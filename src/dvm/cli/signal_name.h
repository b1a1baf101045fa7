/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals as people name them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* 15, TERM or SIGTERM, in letters of either case. False: it is none from 1 to 64. */
bool signal_take(const char *text, uint32_t *number);
