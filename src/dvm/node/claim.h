/* SPDX-License-Identifier: BSD-3-Clause */
/* One daemon of a Slurm job on a node: two DVMs would each give away all that it has. */
#ifndef PMI2X_DVM_CLAIM_H
#define PMI2X_DVM_CLAIM_H

/*
 * This process has the node of this name in its job, until it ends. One that is about to
 * end is waited for. 0, -EADDRINUSE: another process of this user's has it; what else
 * fails is nobody's claim. Blocks for some seconds.
 *
 * It is an abstract unix socket whose name others can guess. Another user who binds it only
 * disables the claim (0): two DVMs of a job on one node are not noticed then.
 */
int claim_node(const char *node);

#endif
