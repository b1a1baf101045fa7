/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments and environment of a rank: the user's, with what a task sets and without what
 * belongs to the step or program that started the DVM.
 */
#ifndef PMI2X_DVM_RANK_PROGRAM_H
#define PMI2X_DVM_RANK_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "dvm/core/node.h"
#include "dvm/zygote/resources.h"

#define EXTRA_MAX 40 /* variables of a rank */

/* The program of one rank. Its pointers are valid during the call. */
struct node_rank {
	const struct dvm_launch *launch;
	const struct dvm_profile_msg *profile;
	uint32_t local; /* among the ranks here, from 0 */
	struct dvm_cores cores;
	uint64_t gpus;
	uint32_t part;
};

struct program {
	char **argv, **env;
	char *extra[EXTRA_MAX]; /* of the variables those that are its own */
	size_t nextra;
	char *pmi_fd;           /* of these: room for the number; NULL: it has no PMI */
};

/*
 * Make it before the fork: a child of vfork must not allocate. pmi: the rank is to have
 * PMI. 0, and then program_free frees it, or -ENOMEM. It points into the texts of *r.
 */
int program_make(struct program *p, const struct node_rank *r,
		 const struct resources *has, bool pmi);
void program_free(struct program *p);

#endif
