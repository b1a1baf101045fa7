/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments and environment of a rank: the user's, with the variables that a task sets, and
 * without those of the step or program that started the DVM.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dvm/core/node.h"
#include "dvm/zygote/resources.h"

#define EXTRA_MAX 40 /* variables of a rank */

/* The program of one rank. Its pointers are valid during the call. */
struct node_rank {
	const struct dvm_launch *launch;
	const struct dvm_profile_msg *profile;
	uint32_t local; /* index among the ranks of this node */
	struct dvm_cores cores;
	uint64_t gpus;
	uint32_t part;
};

struct program {
	char **argv, **env;
	char *extra[EXTRA_MAX]; /* variables that the program has allocated */
	size_t nextra;
	char *pmi_fd;           /* one of these: room for the number; NULL: no PMI */
};

/*
 * Make the program before the fork: a child of vfork must not allocate. pmi: the rank uses
 * PMI. 0, and then program_free frees it, or -ENOMEM. The program points into the texts of
 * *r.
 */
int program_make(struct program *p, const struct node_rank *r,
		 const struct resources *has, bool pmi);
void program_free(struct program *p);
