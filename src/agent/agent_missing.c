/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A neighbour that refuses every connection: will it still start, or has it
 * ended? One that is launched late has to be waited for. One whose ranks have
 * ended without PMI has no slurmstepd any more, and would be waited for in vain.
 *
 * While ranks of this node wait in a collective, three are asked in turn:
 *
 *   srun, whether the neighbour's ranks have been started: its agent has then
 *   listened before;
 *   slurmd there, to tell it where we listen: an agent that lives would hear
 *   of us, on whatever port it listens itself;
 *   the neighbour's ports, all of them, once more.
 *
 * Only when all three deny it the neighbour is lost.
 */
#include <errno.h>
#include <stdio.h>

#include "agent/agent_internal.h"
#include "libutil/rankset.h"

#define ABSENT_RANKS_MAX 200 /* bytes of their list */

/* So many tries in a row go to each port at which it could be: next_port. */
#define ABSENT_TRIES (2 * (STEP_PORT_TRIES - 1))

static uint64_t now_ms(const struct agent *a)
{
	return uv_now(loop_uv(a->loop));
}

/* Nobody listens at that port, or an agent that is not the neighbour's. */
static bool is_refusal(int error)
{
	return error == -ECONNREFUSED || error == -EADDRNOTAVAIL;
}

/* ---- slurmd ---- */

/* Only now: an answer from before it was started says nothing. */
static void ask_slurmd(struct neighbour *n)
{
	if (!n->telling)
		n->telling = agent_tell_neighbour(n->agent, n->position, true);
}

void agent_missing_told(struct agent *a, uint32_t position, bool may_listen)
{
	struct neighbour *n = agent_neighbour(a, position);

	n->telling = false;
	if (may_listen || a->stage != AGENT_SERVING ||
	    n->state != NEIGHBOUR_WAITING)
		return;
	n->absence = ABSENCE_UNHEARD;
	n->refusals = 0;
	agent_wireup_again(n);
}

/* ---- srun ---- */

static void ask_srun(struct neighbour *n)
{
	const struct control_msg msg = {
		.type = CONTROL_STARTED,
		.origin = n->agent->step->position,
		.id = n->position,
	};
	struct buf b;

	n->asked = true;
	buf_init(&b, CONTROL_TEXT_MAX);
	if (!control_pack(&b, &msg))
		agent_control_ask(n->agent, b.data, b.len);
	buf_free(&b);
}

bool agent_missing_asks(const struct agent *a)
{
	for (uint32_t i = 0; i < a->links->count; i++) {
		const struct neighbour *n = &a->links->all[i];

		if (n->asked && n->state == NEIGHBOUR_WAITING)
			return true;
	}
	return false;
}

void agent_missing_srun_up(struct agent *a)
{
	for (uint32_t i = 0; i < a->links->count; i++) {
		struct neighbour *n = &a->links->all[i];

		if (n->asked && n->state == NEIGHBOUR_WAITING)
			ask_srun(n);
	}
}

int agent_missing_started(struct agent *a, uint32_t position)
{
	struct neighbour *n = agent_neighbour(a, position);

	if (!n || !n->asked)
		return -EPROTO;
	if (n->state != NEIGHBOUR_WAITING || n->absence != ABSENCE_UNKNOWN)
		return 0;
	n->absence = ABSENCE_STARTED;
	n->looked = now_ms(a);
	ask_slurmd(n);
	return 0;
}

/* ---- its ports ---- */

static void lost(struct neighbour *n)
{
	const struct agent *a = n->agent;
	char list[ABSENT_RANKS_MAX], why[AGENT_WHY_MAX];
	const uint32_t *ranks;
	uint32_t count;

	ranks = layout_ranks_at(a->step->layout, n->position, &count);
	snprintf(why, sizeof(why),
		 "rank%s %s (node %s) exited before the node was connected",
		 count > 1 ? "s" : "",
		 rankset_format(ranks, count, list, sizeof(list)),
		 agent_node_name(a, n->position));
	agent_neighbour_lost(n, why);
}

static void look(struct neighbour *n)
{
	uint64_t now = now_ms(n->agent);

	if (now - n->looked < n->agent->options.absent_ms)
		return;
	n->looked = now;
	if (n->absence == ABSENCE_UNKNOWN)
		ask_srun(n);
	else
		ask_slurmd(n);
}

void agent_missing_tried(struct neighbour *n, int error)
{
	struct agent *a = n->agent;
	bool counts = is_refusal(error) && a->stage == AGENT_SERVING &&
		      pmi_server_pending(a->server);

	if (!counts && n->absence == ABSENCE_UNHEARD)
		n->absence = ABSENCE_STARTED;
	if (!counts)
		return;
	if (n->absence != ABSENCE_UNHEARD)
		look(n);
	else if (++n->refusals == ABSENT_TRIES)
		lost(n);
}
