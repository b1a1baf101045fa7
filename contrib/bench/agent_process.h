/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that serve a node, as their command lines tell. */
#pragma once

#include <sys/types.h>

/*
 * The pmi2x-agent or pmi2x-pmixd of a step ("<job>.<step>") on this host; of one node,
 * where several of the step are on one host, unless `node` is NULL. 0: there is none.
 */
pid_t agent_process(const char *program, const char *jobid, const char *node);
/* All of them on this host, `room` at most. Returns how many. */
unsigned agent_processes(const char *program, const char *jobid, pid_t *pids, unsigned room);
