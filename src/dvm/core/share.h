/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sharing tasks out to several DVMs by their work: slots times seconds. The largest tasks
 * go first, each to the member that has the least work for its size. Calls no system
 * function.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_ANY SIZE_MAX

struct share_member {
	bool up;
	double slots;
	uint64_t nodes;
	double work; /* slots times seconds of the tasks that it got */
};

struct share_task {
	double slots;
	double seconds; /* 0: not known; counts like the mean of the others */
	uint64_t nodes; /* the least number of nodes */
	size_t member;  /* the only member for it, or SHARE_ANY */
};

/* The mean of the known seconds; 1: none is known. */
double share_mean(const struct share_task *tasks, size_t count);
/*
 * Set to[i] to the member for each task, `nmembers` when no member is up, and add its work.
 * A task that fits on no member goes to the largest, which refuses it. 0 or -ENOMEM.
 */
int share_out(struct share_member *members, size_t nmembers,
	      const struct share_task *tasks, size_t count, size_t *to);
