/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * JSON of the head of a DVM: clients' requests, one object a line, answers and events, and
 * tasks in the journal. A layer over the core, as pure: it makes no system call.
 * doc/dvm-internals.md has the keys.
 *
 *   requests.c  requests, {"op": ...}, each answered by one {"ev": ...}
 *   answers.c   answers and refusals
 *   select.c    the tasks that a request names
 *   submit.c    the request to submit tasks, and profiles
 *   spec.c      the description of a task
 *   results.c   how tasks are and have ended
 *   events.c    events that no request has asked for
 *   text.c      bytes as text
 */
#pragma once

#include "dvm/core/head.h"

/* For dvm_head_ops. */
extern const struct head_format dvm_json;

/* A line of a client, without its newline. */
void dvm_json_request(struct dvm_head *h, uint32_t client, const char *line, size_t len,
		      struct dvm_time now);
