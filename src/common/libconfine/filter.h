/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls that pmi2x-agent may make: those that it needs. */
#pragma once

#include <signal.h>

/*
 * For this thread and all that it makes, for good. Call it after confine_begin,
 * before any input is read and any thread made: no_new_privs must be set.
 *
 * A call that is not allowed is not made. Some then return an error, where
 * libraries ask for what they can do without; any other raises SIGSYS, whose
 * handler becomes `denied`: info->si_syscall is the number, and it must end the
 * process. NULL: the signal does.
 *
 * 0; -ENOSYS: the kernel has no filters, or this is a sanitizer's build, and
 * nothing is forbidden; other negative errno: the same, and it should not be.
 */
int filter_install(void (*denied)(int number, siginfo_t *info, void *context));
