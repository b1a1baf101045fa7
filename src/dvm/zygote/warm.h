/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interpreter of up --preload: a process that has imported modules already, and forks a
 * process for each preloaded task (pmi2x-dvm-warm). The zygote starts it, and becomes the
 * parent of the tasks' processes, as of all others. If it has ended, the next task starts it
 * again.
 *
 * A request is: u32 length, with the descriptors of stdin, stdout and stderr; then texts,
 * each with its NUL. The first letter says what a text is:
 *
 *   a ARGUMENT     e NAME=VALUE     d DIRECTORY     u UMASK     c NUMBERS of processors
 *   l RESOURCE SOFT HARD (setrlimit)     1 FLAGS PATH, 2 FLAGS PATH: files for output
 *
 * The answer is i32: the process, or a negative errno; 0 once, when modules are imported.
 */
#ifndef PMI2X_DVM_WARM_H
#define PMI2X_DVM_WARM_H

#include <stdbool.h>
#include <sys/types.h>

#include "dvm/zygote/rank_program.h"

struct warm;

/*
 * Start the interpreter with this code, and wait until it has run. `code` and `node`, the
 * node's name, live as long as *out, which is never freed. 0 or a negative errno; the
 * interpreter prints what is wrong with the code.
 */
int warm_create(struct warm **out, const char *code, const char *node);
/* Start a rank. The process, or a negative errno. stdio: its descriptors, or -1: /dev/null. */
pid_t warm_start(struct warm *w, const struct node_rank *rank, const struct resources *has,
		 const struct program *program, const int stdio[2]);
/* True: this process is the interpreter. NULL is allowed. */
bool warm_is(const struct warm *w, pid_t process);

#endif
