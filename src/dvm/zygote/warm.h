/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interpreter of up --preload: a process that has imported modules already, and forks a
 * process for each preloaded task (pmi2x-dvm-warm). The zygote starts it. The interpreter
 * reaps these processes, and reports their ends. If it has ended, they are the zygote's
 * children, which adopts orphans, and the next task starts the interpreter again.
 *
 * A request is: u32 length, with the descriptors of stdin, stdout and stderr; then texts,
 * each with its NUL. The first letter says what a text is:
 *
 *   a ARGUMENT     e NAME=VALUE     d DIRECTORY     u UMASK     c NUMBERS of processors
 *   l RESOURCE SOFT HARD (setrlimit)     1 FLAGS PATH, 2 FLAGS PATH: files for output
 *
 * The answer is a struct warm_message. So is the report of an end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dvm/zygote/rank_program.h"

enum warm_what {
	WARM_STARTED, /* process: of the task, or a negative errno; 0 once: modules are imported */
	WARM_ENDED,
};

struct warm_message {
	int32_t what, process;
	int32_t status, unused; /* as of wait */
	uint64_t user_us, system_us, peak_kib;
};

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
/* The descriptor to poll for ends; -1: none. NULL is allowed, here and below. */
int warm_fd(const struct warm *w);
/* Read what has arrived, without waiting. */
void warm_read(struct warm *w);
/* The next end that was read. False: there is none. */
bool warm_next_end(struct warm *w, struct warm_message *out);
/*
 * True, once: the interpreter has ended. It may have reaped processes without a report. All
 * others are children of this process now.
 */
bool warm_was_lost(struct warm *w);
/* True: this process is the interpreter. */
bool warm_is(const struct warm *w, pid_t process);
