/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks that are placed and launched, or that go on where another head launched them. */
#include "dvm/core/head_private.h"

#include <signal.h>
#include <string.h>

/* The places of a task of several nodes; of too many none, and they have no PMI. */
static void pack_places(const struct dvm_head *h, const struct head_task *t,
			struct buf *b)
{
	const struct ledger_placement *where = t->placement;
	int rc = 0;

	for (uint32_t i = 0; !rc && where->count > 1 && i < where->count; i++) {
		const struct head_node *n = &h->nodes[where->parts[i].node];
		const struct dvm_place p = {
			where->parts[i].node, where->parts[i].ranks, n->address,
			{ n->name, strlen(n->name) },
		};

		rc = dvm_place_pack(b, &p);
	}
	if (rc)
		buf_clear(b);
}

/* Each of its ranks could be one more. */
static uint32_t universe(const struct dvm_head *h, const struct head_task *t)
{
	uint32_t each = t->spec.shape.cores ? t->spec.shape.cores : 1;
	uint32_t all = ledger_all_cores(h->ledger) / each;

	return all > t->spec.shape.ranks ? all : t->spec.shape.ranks;
}

static struct dvm_bytes spawned_about(const struct head_task *t)
{
	return t->spawned ? (struct dvm_bytes){ t->spawned->about, t->spawned->about_len } :
			    (struct dvm_bytes){ NULL, 0 };
}

static void launch_part(struct dvm_head *h, struct head_task *t, uint32_t i,
			const struct buf *places)
{
	const struct ledger_part *p = &t->placement->parts[i];
	const char *path = t->spec.path ? t->spec.path : "";
	struct dvm_msg m = {
		.type = DVM_LAUNCH,
		.launch = {
			.task = t->id,
			.instance = t->instance,
			.profile = t->profile->number,
			.ranks = t->spec.shape.ranks,
			.nodes = t->placement->count,
			.node = i,
			.first_rank = p->first_rank,
			.ranks_here = p->ranks,
			.cores = p->cores,
			.gpus = p->gpus,
			.limit_s = t->spec.limit_s,
			.grace_ms = h->options.grace_ms,
			.universe = universe(h, t),
			.pmi = t->spec.pmi,
			.keep = h->options.keeps,
			.output = t->spec.output,
			.argv = { t->spec.argv, t->spec.argv_len },
			.path = { path, strlen(path) + 1 },
			.error = { t->spec.error, t->spec.error ? strlen(t->spec.error) + 1 : 0 },
			.append = t->spec.append,
			.cwd = { t->spec.cwd, t->spec.cwd ? strlen(t->spec.cwd) + 1 : 0 },
			.places = { places->data, places->len },
			.spawned = spawned_about(t),
			.input = { t->spec.input, p->first_rank ? 0 : t->spec.input_len },
		},
	};

	if (m.launch.output == DVM_OUTPUT_FORWARD)
		m.launch.window = output_begin(h, t, p->node);
	profile_send(h, t->profile, p->node);
	head_queue_msg(h, p->node, &m);
}

static void place(struct dvm_head *h, struct head_task *t)
{
	task_move(h, t, TASK_PLACED);
	t->placed_ns = h->now.wall_ns;
	t->started_ns = 0;
	t->parts_left = t->placement->count;
	journal_start(h, t);
}

void tasks_place(struct dvm_head *h)
{
	struct ledger_placement *placement;
	struct queue_item *item;

	if (!h->retry || h->options.paused || !head_is_ready(h))
		return;
	h->retry = false;
	while (!queue_place(h->queue, h->ledger, h->now.ms, &item, &placement)) {
		struct head_task *t = task_of_item(item);

		t->placement = placement;
		place(h, t);
	}
}

static void launch(struct dvm_head *h, struct head_task *t)
{
	struct buf places;

	buf_init(&places, DVM_PLACES_MAX);
	pack_places(h, t, &places);
	task_move(h, t, TASK_LAUNCHED);
	for (uint32_t i = 0; i < t->placement->count; i++)
		launch_part(h, t, i, &places);
	buf_free(&places);
	if (t->cancelled || t->loss) /* since it was placed */
		task_signal_parts(h, t, 0);
}

/* Tasks to launch are the last of h->running, in the order of their starts. */
void tasks_launch(struct dvm_head *h)
{
	struct head_task *t = h->running ? h->running->prev : NULL;

	while (t && t->state == TASK_PLACED && t != h->running && t->prev->state == TASK_PLACED)
		t = t->prev;
	for (; t && t->state == TASK_PLACED; t = t->next) {
		if (h->options.once && !journal_is_safe(h, t->start_at))
			break;
		launch(h, t);
	}
}

void task_adopt(struct dvm_head *h, struct head_task *t,
		struct ledger_placement *placement, uint64_t started_ns)
{
	queue_remove(h->queue, &t->item);
	task_move(h, t, TASK_LAUNCHED);
	t->placement = placement;
	t->parts_left = placement->count;
	t->placed_ns = t->placed_ns ? t->placed_ns : started_ns;
	t->started_ns = started_ns;
	journal_start(h, t);
	if (t->cancelled)
		task_signal_parts(h, t, 0);
}

void task_lose_rest(struct dvm_head *h, struct head_task *t, bool once)
{
	t->losses = once ? HEAD_INSTANCES_MAX : t->losses + 1;
	t->loss = LOSS_STARTED;
	t->result.status = SIGKILL;
	task_set_why(t, "the task was on nodes that were lost with the head");
	task_signal_parts(h, t, SIGKILL);
}
