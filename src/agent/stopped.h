/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a process may run at all. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Stopped by a signal or a debugger, or frozen with its cgroup: with
 * proctrack/cgroup Slurm so suspends what catches SIGTSTP. False when that cannot
 * be found out. Reads some small files of /proc and /sys; any thread.
 */
bool process_is_stopped(pid_t pid);

/*
 * The process is there, and is not ending. Its name, shorter than `size`, or "": of all
 * users' processes that /proc shows.
 */
bool process_lives(pid_t pid, char *name, size_t size);
