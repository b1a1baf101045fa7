/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to a head in several tests, as nodes and clients would. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dvm/core/dvm_msg.h"
#include "dvm/core/head.h"
#include "dvm/json/dvm_json.h"

/* A message comes from a node. 0 or a negative errno. */
static inline int tell_msg(struct dvm_head *h, uint32_t node, const struct dvm_msg *m,
			   struct dvm_time now)
{
	struct buf out;
	int rc;

	buf_init(&out, 1 << 20);
	rc = dvm_msg_pack(&out, m);
	if (!rc)
		dvm_head_node_input(h, node, out.data, out.len, now);
	buf_free(&out);
	return rc;
}

/* A node has come: "n0", "n1". 0 or a negative errno. */
static inline int tell_registered(struct dvm_head *h, uint32_t node, uint32_t cores,
				  struct dvm_time now)
{
	char name[16];
	const struct dvm_msg m = {
		.type = DVM_REGISTER,
		.reg = { .version = DVM_VERSION, .has = { cores, 1, 1000 },
			 .name = { name, (size_t)snprintf(name, sizeof(name), "n%u",
							  node) } },
	};

	return tell_msg(h, node, &m, now);
}

/* A line of JSON, in which each ' stands for ", comes from a client; and a turn follows. */
static inline void tell_request(struct dvm_head *h, uint32_t client, struct dvm_time now,
				const char *fmt, va_list ap)
{
	char line[8192];

	vsnprintf(line, sizeof(line), fmt, ap);
	for (char *c = line; *c; c++)
		if (*c == '\'')
			*c = '"';
	dvm_json_request(h, client, line, strlen(line), now);
	dvm_head_turn(h, now);
}
