/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of the client libraries to whoever runs the program.
 *
 * Standard error may be a pipe that nobody reads any more. A program that would go
 * on without our message must not be killed by SIGPIPE for it.
 */
#pragma once

#define ERROR_TEXT_MAX 4096 /* bytes; what is longer is cut */

/*
 * Write a text with its newline to standard error, in one piece, and never raise a
 * signal. Text that cannot be written is lost. Keeps errno. Any thread.
 */
void print_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
