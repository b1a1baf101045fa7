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
 *
 * srun hears of a node from its slurmstepd, when that has started the ranks. If it is
 * killed before, srun never hears; but it has left the socket at which slurmd reaches
 * it, where nobody listens any more. Only a node of this run of the step has made one
 * of that name, so whose connection slurmd finds refused has been started, too.
 */
#include "agent/peers/missing.h"

#include <errno.h>

#include "agent/peers/connect_back.h"

/* Tries in a row at each port at which the neighbour could be: next_port. */
#define MISSING_TRIES (2 * (STEP_PORT_TRIES - 1))

/* Nobody listens at that port, or an agent that is not the neighbour's. */
static bool is_refusal(int error)
{
	return error == -ECONNREFUSED || error == -EADDRNOTAVAIL;
}

/* ---- slurmd ---- */

static void has_started(struct neighbour *n)
{
	n->absence = ABSENCE_STARTED;
	n->looked = node_now(n->peers->node);
}

void missing_called(struct neighbour *n, int rc)
{
	/* With other errors it may have arrived though the call failed. */
	if ((rc != -ENOENT && rc != -ECONNREFUSED) || n->peers->leaving ||
	    n->state != NEIGHBOUR_WAITING)
		return;
	if (n->called_in == ABSENCE_UNKNOWN) {
		/* Asked again later: it may have been about to listen. */
		if (rc == -ECONNREFUSED && n->absence == ABSENCE_UNKNOWN)
			has_started(n);
		return; /* the neighbour may have started since it was asked */
	}
	n->killed = rc == -ECONNREFUSED;
	n->absence = ABSENCE_UNHEARD;
	n->refusals = 0;
	if (!n->attempt)
		neighbour_set_timer(n, 0);
}

/* ---- srun ---- */

static void ask_srun(struct neighbour *n)
{
	n->asked = true;
	n->peers->ops->ask_started(n->peers->arg, n->position);
}

bool missing_is_asked(const struct neighbour *n)
{
	return n->asked && n->state == NEIGHBOUR_WAITING;
}

void missing_srun_up(struct neighbour *n)
{
	if (missing_is_asked(n))
		ask_srun(n);
}

int missing_started(struct neighbour *n)
{
	if (!n->asked)
		return -EPROTO;
	if (n->state != NEIGHBOUR_WAITING || n->absence != ABSENCE_UNKNOWN)
		return 0;
	has_started(n);
	connect_back_call(n);
	return 0;
}

/* ---- its ports ---- */

static void lost(struct neighbour *n)
{
	const struct peers *p = n->peers;
	char why[NODE_WHY_MAX];

	p->ops->describe_missing(p->arg, n->position, n->killed, why,
				 sizeof(why));
	neighbour_lost(n, "%s", why);
}

static void look(struct neighbour *n)
{
	const struct node *node = n->peers->node;
	uint64_t now = node_now(node);

	if (now - n->looked < node->options->absent_ms)
		return;
	n->looked = now;
	if (n->absence == ABSENCE_UNKNOWN)
		ask_srun(n);
	connect_back_call(n);
}

void missing_tried(struct neighbour *n, int error)
{
	const struct peers *p = n->peers;
	bool counts = is_refusal(error) && p->ops->waits(p->arg);

	if (!counts && n->absence == ABSENCE_UNHEARD)
		n->absence = ABSENCE_STARTED;
	if (!counts)
		return;
	if (n->absence != ABSENCE_UNHEARD)
		look(n);
	else if (++n->refusals == MISSING_TRIES)
		lost(n);
}
