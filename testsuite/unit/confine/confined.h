/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that confines itself, and what it reports. */
#pragma once

#include <sys/types.h>

#include "libconfine/confine.h"

#define NOBODY 65534
#define GROUP 65533
#define REPORT 3 /* where a confined process reports */
#define HOLD 4   /* end-of-file ends it */
#define FDS 5
#define DENIED 1000 /* added to the number of a system call */
#define PATIENCE_SECONDS 60 /* limit: the test has failed */

/* NOBODY and GROUP, and FDS descriptors. */
extern const struct confine_options as_nobody;

/* Reports of the confined process about itself, one message each. */
struct report {
	int rc; /* of confine_begin, filter_install, or of what was done */
	char why[CONFINE_WHY_MAX];
};

struct confined {
	int report, hold;
	pid_t pid;
};

/*
 * Fork a child that confines and filters itself and reports how that went,
 * which is returned. `first` is called in it before, `then` afterwards; either
 * may be NULL; that `then` has returned is reported as "back". A denied system call
 * reports DENIED and its number, and exits with 0.
 */
struct report confined_start(struct confined *c,
			     const struct confine_options *o,
			     void (*first)(void), void (*then)(void));

/* The next report of the program; -EPIPE: it has ended. */
struct report confined_hear(const struct confined *c);

/* Let it go. How it has ended, as waitpid says. */
int confined_end(struct confined *c);

/* In a child, as `then`. */
void confined_report(int rc, const char *why);

/* Takes the state of a plain user's process: no rights, and it is dumpable. */
void become_nobody(void);

/* All of it needs root, and a filter of system calls: 77, with a word why, where there
   is none; else 0. */
int confined_skip(void);
