/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How pmi2x-agent, which slurmstepd starts as root, becomes a process of the
 * job's user that has no right of its own.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define CONFINE_WHY_MAX 256

/*
 * Sanitizers make system calls of their own, and at the end trace their own
 * process: such builds stay dumpable and have no filter.
 */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CONFINE_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_SANITIZED 1
#endif
#ifndef CONFINE_SANITIZED
#define CONFINE_SANITIZED 0
#endif

/* All of it is said by who starts the program, nothing by the user. */
struct confine_options {
	uid_t uid; /* to become. A caller that is not root can only keep its own */
	gid_t gid;
	/* Directories of cgroups to move into, NULL at the end; or NULL. */
	const char *const *cgroups;
	int fds;     /* descriptors below this one stay open */
	bool traced; /* by a debugger or valgrind: stay dumpable */
};

/*
 * The arguments of main(): `ours` arguments, the program's name and the ids of user and
 * group first of all, and then the cgroups. false: not so, nothing is written. `argv`
 * must outlive the options.
 */
bool confine_arguments(struct confine_options *options, int ours, int argc,
		       char **argv);

/*
 * Call it first in main(), before any input is read and any thread made. 0; or
 * negative errno with a sentence in `why`, from which on the process must do
 * nothing but say so and exit: it may still have rights.
 *
 * Afterwards: user and group as asked, no supplementary group, no capability in
 * any set, none to be had by exec; not dumpable; in the cgroups; empty environment;
 * in "/"; umask 077; default signals but SIGPIPE, which is ignored; no descriptor from `fds` on; limits of
 * the machine instead of slurmd's, no core files. Without root: the same, but
 * user and groups are who they were, and a cgroup that may not be entered, a
 * limit that may not be raised are left alone.
 */
int confine_begin(const struct confine_options *options,
		  char why[CONFINE_WHY_MAX]);
