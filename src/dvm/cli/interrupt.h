/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals that ask a command to end: INT, HUP, QUIT, TERM and PIPE, unless they are
 * ignored, as HUP is under nohup. The first is noted; a second INT, QUIT or TERM ends the
 * process at once. One thread.
 */
#pragma once

#include <sys/types.h>

void interrupt_catch(void);
/* The signal that has come, or 0. */
int interrupt_number(void);
/* Readable when a signal has come; -1: interrupt_catch was not called. */
int interrupt_fd(void);
/*
 * fork(2) whose child handles these signals as before interrupt_catch, and loses none that
 * comes before it executes a program.
 */
pid_t interrupt_fork(void);
/* End by the signal that has come. */
void interrupt_die(void) __attribute__((noreturn));
