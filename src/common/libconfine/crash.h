/* SPDX-License-Identifier: BSD-3-Clause */
/* The last words of an agent that crashes. */
#pragma once

#include <signal.h>

/*
 * From here on, who has started this program hears over AGENT_FD_HOST by which
 * signal it ends, if it is one of a fault. 0 or a negative errno.
 */
int crash_watch(void);

/* As above, for a system call that the filter does not allow: see filter_install. */
void crash_denied(int number, siginfo_t *info, void *context);
