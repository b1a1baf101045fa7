/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the environment of another process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * True: the program of the process was started with this variable, a number. False also if
 * /proc does not show the environment, as that of a process with more rights.
 */
bool environ_number(pid_t pid, const char *name, uint32_t *out);
