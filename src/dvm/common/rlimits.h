/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a process (getrlimit(2)): those that its tasks get, and its own. */
#pragma once

#include <sys/resource.h>

#include "dvm/core/limits.h"

/* RLIMIT_... of each of dvm/core/limits.h. */
extern const int rlimits_numbers[DVM_LIMITS];

/* The umask and soft limits of this process. One thread: the umask is set for a moment. */
void rlimits_get(struct dvm_limits *out);

/*
 * A daemon needs a descriptor for each rank or connection: raise the soft limit of
 * descriptors. *as_it_was is for processes that this one starts.
 */
void rlimits_raise(struct rlimit *as_it_was);
