/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One daemon of a Slurm job on a node: two DVMs would each give away all of its resources.
 */
#pragma once

/*
 * Claim the node of this name in the job for this process, until it ends. Waits for a
 * process that is about to end. 0; -EADDRINUSE: another process of this user has the claim;
 * other failures are no claim of another process. Blocks for some seconds.
 *
 * The claim is an abstract unix socket whose name others can guess. Another user who binds
 * it only disables the claim (0): two DVMs of a job on one node are not noticed then.
 */
int claim_node(const char *node);
