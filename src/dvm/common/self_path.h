/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path of the running program; other programs of pmi2x-dvm are in the same directory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The directory of the running program. False: it is not known. */
bool own_dir(char *out, size_t size);
