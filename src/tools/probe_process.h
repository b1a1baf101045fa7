/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe: a program that it runs, and what that prints. */
#pragma once

#define PROBE_LINE_MAX 4096 /* bytes; longer lines come in pieces */
#define PROBE_LATE 124 /* as timeout(1) says it */
#define PROBE_NOT_STARTED 127

/*
 * Run argv[0], which is looked up in PATH, and hand every line of its standard output,
 * without newline, to `use`. A program that has not ended after `seconds` is ended; 0:
 * there is no limit. Returns the exit code of the program; 128 and the signal that has
 * killed it; PROBE_LATE or PROBE_NOT_STARTED after a message.
 */
int probe_process_read(char *const argv[], int seconds,
		       void (*use)(void *arg, char *line), void *arg);

/* Wait for a child: its exit code as above. */
int probe_process_wait(int pid);
