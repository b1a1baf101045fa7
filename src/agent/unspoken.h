/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that needs an MPI library and whose ranks never used PMI most likely ran as
 * singletons. The warning comes once, at the step's first node, from the process that
 * sees its last rank leave: its supervisor, or its agent if that has been started.
 */
#pragma once

#include <stdint.h>

#include "libutil/log.h"

void unspoken_say(const struct log_hook *log, uint32_t ranks);
