/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads, locks and futexes of the simulated machine. */
#pragma once

struct process;

/* The process was killed: it waits for no futex any more. */
void threads_forget(const struct process *p);
