/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads, locks and futexes of the simulated machine. */
#ifndef PMI2X_SIMULATION_THREADS_H
#define PMI2X_SIMULATION_THREADS_H

struct process;

/* The process was killed: it waits for no futex any more. */
void threads_forget(const struct process *p);

#endif
