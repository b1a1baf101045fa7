/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The groups of PMI-1 1.2's barrier_in, as text:
 *
 *   WORLD:T         all ranks of the step
 *   NODE:T          all ranks of the sender's node
 *   R0,R1,...:T     these ranks, in any order
 *
 * T tells apart the barriers of several threads. MPICH sends the absolute value of a
 * 32-bit hash: so T is 0 to 2147483647, or -2147483648, which has none. Pure functions.
 */
#pragma once

#include <stdint.h>

#define PMI_GROUP_WHY_MAX 96 /* bytes of what is wrong with a group, NUL included */

enum pmi_group_form { PMI_GROUP_WORLD, PMI_GROUP_NODE, PMI_GROUP_LIST };

struct pmi_group {
	enum pmi_group_form form;
	int32_t tag;     /* as far as it could be read, also after an error */
	uint32_t *ranks; /* of a list: ascending, each once; NULL otherwise, or */
	uint32_t count;  /* after pmi_group_fill */
};

/*
 * Read a group of a step of `nranks` ranks. 0, -EINVAL (with a reason for people) or
 * -ENOMEM; pmi_group_free is needed after 0 only, and allowed always.
 */
int pmi_group_read(struct pmi_group *g, const char *text, uint32_t nranks,
		   char why[PMI_GROUP_WHY_MAX]);
void pmi_group_free(struct pmi_group *g);
/* Give a WORLD of `nranks` ranks its list. 0 or -ENOMEM. */
int pmi_group_fill(struct pmi_group *g, uint32_t nranks);
