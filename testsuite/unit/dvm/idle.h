/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of nodes and heads that do nothing, and what most tests give to a head. */
#pragma once

#include "dvm/core/head.h"
#include "dvm/core/node.h"

static inline int idle_open_output(void *arg, uint32_t part)
{
	return 0;
}

static inline int idle_open_pmi(void *arg, uint32_t part, const struct dvm_launch *launch)
{
	return 0;
}

static inline void idle_profile(void *arg, const struct dvm_profile_msg *profile)
{
}

static inline void idle_pmi_status(void *arg, uint32_t part, struct buf *out)
{
}

static inline void idle_part(void *arg, uint32_t part)
{
}

static inline void idle_rank_ended(void *arg, uint32_t part, uint32_t slot, int32_t status)
{
}

static inline void idle(void *arg)
{
}

static inline struct dvm_head_options usual_options(uint32_t nodes)
{
	return (struct dvm_head_options){
		.name = "test", .build = "test", .nodes = nodes,
		.queue = { .window = 100, .patience_ms = 1000 },
		.grace_ms = 500, .max_waiting = 100, .fast = true,
	};
}
