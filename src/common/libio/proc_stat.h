/* SPDX-License-Identifier: BSD-3-Clause */
/* The line of the kernel about a process, /proc/PID/stat: proc(5). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct proc_stat {
	char state;
	int parent, group;
	unsigned long user, system; /* processor time, in ticks */
	uint64_t started;           /* ticks since the machine was started */
	int status;                 /* as wait(2) has it, of a process that is ending; 0: unknown */
};

/* False: there is no such process, or /proc does not show it; all of *out is 0 then. */
bool proc_stat_read(uint64_t process, struct proc_stat *out);
