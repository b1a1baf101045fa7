/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that writes the complete output of a part to files, so that pmi2x-dvmd never
 * waits for a file system. pmi2x-dvmd forks it when a part has printed more than the tails
 * hold (output_writer.h).
 *
 * Messages come over a socket of type SOCK_SEQPACKET: a byte, the number of the stream (1 or
 * 2), and what was written to it. After the last message the process answers with texts,
 * each with its NUL: why the files are not whole, or nothing; and the names of the files.
 */
#pragma once

#include <stddef.h>

#define OUTPUT_FILE_PIECE ((size_t)32 << 10) /* limit of the bytes of a message behind the first */
#define OUTPUT_FILE_ANSWER ((size_t)512)     /* limit of the bytes of the answer */

/*
 * Write NAME.out and NAME.err in `dir`, which is made if it is missing. Where a file exists,
 * the new one is NAME.1.out and so on. Call it in a child of fork(2) in which only async-signal
 * safe functions and this one are called. Other descriptors than `fd` are closed.
 */
void output_file_main(int fd, const char *dir, const char *name) __attribute__((noreturn));
