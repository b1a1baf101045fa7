/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sharing tasks out to several DVMs, as what they will keep busy: slots times seconds. The
 * largest tasks go first, each to the member that has the least to do for its size. Calls no
 * system function.
 */
#ifndef PMI2X_DVM_SHARE_H
#define PMI2X_DVM_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_ANY SIZE_MAX

struct share_member {
	bool up;
	double slots;
	uint64_t nodes;
	double work; /* slots times seconds that it has been given */
};

struct share_task {
	double slots;
	double seconds; /* 0: not known; it counts like the mean of the others */
	uint64_t nodes; /* that it needs at least */
	size_t member;  /* that must have it, or SHARE_ANY */
};

/* The mean of the seconds that are known; 1: none is. */
double share_mean(const struct share_task *tasks, size_t count);
/*
 * Set to[i] to the member for each task, `nmembers` when none is up, and add its work. A
 * task that no member can have goes to the largest, which refuses it. 0 or -ENOMEM.
 */
int share_out(struct share_member *members, size_t nmembers,
	      const struct share_task *tasks, size_t count, size_t *to);

#endif
