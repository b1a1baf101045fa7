/* SPDX-License-Identifier: BSD-3-Clause */
/* Surveys, for srun's server: frames to the agents, the host's names. */
#include <utlist.h>

#include "launcher/srun_server_internal.h"

void srun_server_send_to_agent(struct asker *to, const void *data, size_t len)
{
	struct agent_link *a = (struct agent_link *)to;

	link_send_bytes(a->link, FRAME_CONTROL_DOWN, data, len);
}

static void send_control(struct agent_link *a, const struct control_msg *msg)
{
	struct buf frame;

	buf_init(&frame, CONTROL_FRAME_MAX);
	if (!control_pack(&frame, msg))
		srun_server_send_to_agent(&a->asker, frame.data, frame.len);
	buf_free(&frame);
}

static void send_to_all(struct srun_server *h, const struct control_msg *msg)
{
	struct agent_link *a;

	DL_FOREACH(h->agents, a)
		send_control(a, msg);
}

static uint32_t live_nodes(void *arg)
{
	struct srun_server *h = arg;

	return h->host.nodes(h->host.arg);
}

static const char *live_node_name(void *arg, uint32_t position)
{
	struct srun_server *h = arg;

	return h->host.node_name(h->host.arg, position);
}

static void live_ask(void *arg, uint32_t query)
{
	send_to_all(arg, &(struct control_msg){ .type = CONTROL_QUERY,
						.id = query });
}

static void live_expire(void *arg, enum coll_kind kind, uint32_t seq,
			const char *why)
{
	send_to_all(arg, &(struct control_msg){ .type = CONTROL_EXPIRE,
						.id = seq,
						.rank = kind,
						.text = (char *)why });
}

/*
 * Nothing has failed: no error. A survey that waits for a silent node may be over
 * only when the step is being ended, and why is said: its news are old then.
 */
static void live_report(void *arg, const char *text)
{
	struct srun_server *h = arg;

	if (!h->aborted)
		log_info(h->log, "%s", text);
}

int srun_server_live_open(struct srun_server *h)
{
	static const struct live_ops ops = {
		.nodes = live_nodes,
		.node_name = live_node_name,
		.ask = live_ask,
		.expire = live_expire,
		.report = live_report,
	};

	if (!h->host.nodes)
		return 0;
	return live_open(&h->live, loop_uv(h->loop), h->jobid, &ops, h, h->log);
}

void srun_server_live_stall(void *arg, uint32_t age_s, bool give_up)
{
	struct srun_server *h = arg;

	if (h->live)
		live_stall(h->live, age_s, give_up);
}

void srun_server_live_state(void *arg, uint32_t query, uint32_t position,
		    const void *data, size_t len)
{
	struct srun_server *h = arg;

	if (h->live)
		live_state(h->live, query, position, data, len);
}

void srun_server_live_joined(struct agent_link *a)
{
	uint32_t query;

	if (live_asks(a->server->live, &query))
		send_control(a, &(struct control_msg){ .type = CONTROL_QUERY,
						       .id = query });
}
