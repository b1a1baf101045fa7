/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that is the agent of a node, as its command line tells. */
#ifndef PMI2X_AGENT_PROCESS_H
#define PMI2X_AGENT_PROCESS_H

#include <sys/types.h>

/*
 * The pmi2x-agent of a step ("<job>.<step>") on this host; of one node, where several
 * of the step are on one host, unless `node` is NULL. 0: there is none.
 */
pid_t agent_process(const char *jobid, const char *node);

#endif
