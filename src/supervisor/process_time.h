/* SPDX-License-Identifier: BSD-3-Clause */
/* Times of this process, for a trace. */
#pragma once

#include <stdint.h>

/* When this process was made, ns of CLOCK_MONOTONIC, to 10 ms; 0: unknown. */
int64_t process_start(void);
