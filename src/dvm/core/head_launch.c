/* SPDX-License-Identifier: BSD-3-Clause */
/* Tasks that are placed and launched, or that go on where another head launched them. */
#include "dvm/core/dvm_places.h"
#include "dvm/core/head_private.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* The addresses of the neighbours of a task's node. */
static int pack_neighbours(const struct dvm_head *h, const struct head_task *t, uint32_t i,
			   struct buf *b)
{
	const struct ledger_placement *where = t->run->placement;
	uint32_t near[DVM_NEIGHBOURS_MAX];
	uint32_t count = dvm_neighbours(where->count, t->ranks, i, near);
	int rc = 0;

	buf_clear(b);
	for (uint32_t k = 0; !rc && k < count; k++) {
		const struct dvm_neighbour n = {
			near[k], h->nodes[where->parts[near[k]].node].address,
		};

		rc = dvm_neighbour_pack(b, &n);
	}
	return rc;
}

/* Each of its ranks could be one more. */
static uint32_t universe(const struct dvm_head *h, const struct head_task *t)
{
	const uint32_t cores = queue_shape(&t->item)->cores;
	uint32_t all = ledger_all_cores(h->ledger) / (cores ? cores : 1);

	return all > t->ranks ? all : t->ranks;
}

/* A text with its NUL; NULL: no bytes. */
static struct dvm_bytes text_bytes(const char *text)
{
	return (struct dvm_bytes){ text, text ? strlen(text) + 1 : 0 };
}

static struct dvm_bytes spawned_about(const struct head_task *t)
{
	return t->spawned ? (struct dvm_bytes){ t->spawned->about, t->spawned->about_len } :
			    (struct dvm_bytes){ NULL, 0 };
}

/* Bytes that the parts of a task on several nodes get. */
struct whereabouts {
	struct buf runs;       /* the same for all */
	struct buf neighbours; /* of the part that is launched */
};

static void launch_part(struct dvm_head *h, struct head_task *t, uint32_t i,
			const struct whereabouts *w)
{
	const struct ledger_part *p = &t->run->placement->parts[i];
	const struct task_texts *texts = task_texts(t);
	struct dvm_msg m = {
		.type = DVM_LAUNCH,
		.launch = {
			.task = t->id,
			.instance = t->instance,
			.profile = t->profile->number,
			.ranks = t->ranks,
			.nodes = t->run->placement->count,
			.node = i,
			.first_rank = p->first_rank,
			.ranks_here = p->ranks,
			.cores = p->cores,
			.gpus = p->gpus,
			.limit_s = t->limit_s,
			.grace_ms = h->options.grace_ms,
			.universe = universe(h, t),
			.pmi = t->pmi,
			.keep = h->options.keeps,
			.output = (enum dvm_output)t->output,
			.argv = { t->argv, t->argv_len },
			.path = text_bytes(texts->path ? texts->path : ""),
			.error = text_bytes(texts->error),
			.append = t->append,
			.preloaded = t->preloaded,
			.cwd = text_bytes(texts->cwd),
			.runs = { w->runs.data, w->runs.len },
			.neighbours = { w->neighbours.data, w->neighbours.len },
			.spawned = spawned_about(t),
			.input = { texts->input, p->first_rank ? 0 : texts->input_len },
			.line = (t->line ? t->line : t->number) & DVM_LINE_MASK,
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
	t->run->placed_ns = h->now.wall_ns;
	t->run->started_ns = 0;
	t->run->parts_left = t->run->placement->count;
	journal_start(h, t);
}

/* The next task that is placed has memory for that; else it is placed in a later turn. */
static bool has_spare(struct dvm_head *h)
{
	if (!h->spare)
		h->spare = calloc(1, sizeof(*h->spare));
	h->retry |= !h->spare;
	return h->spare;
}

static void use_spare(struct dvm_head *h, struct head_task *t)
{
	if (t->run)
		return; /* of an earlier try */
	t->run = h->spare;
	h->spare = NULL;
}

void tasks_place(struct dvm_head *h)
{
	struct ledger_placement *placement;
	struct queue_item *item;

	if (!h->retry || h->options.paused || !head_is_ready(h))
		return;
	h->retry = false;
	while (has_spare(h) &&
	       !queue_place(h->queue, h->ledger, h->now.ms, &item, &placement)) {
		struct head_task *t = task_of_item(item);

		use_spare(h, t);
		t->run->placement = placement;
		place(h, t);
	}
}

/* Without memory for them the node is lost, and the task runs again. */
static void launch_parts(struct dvm_head *h, struct head_task *t)
{
	const struct ledger_placement *where = t->run->placement;
	struct whereabouts w;
	int rc;

	buf_init(&w.runs, DVM_RUNS_MAX);
	buf_init(&w.neighbours, DVM_NEIGHBOURS_BYTES);
	rc = dvm_runs_pack(&w.runs, where);
	for (uint32_t i = 0; i < where->count; i++) {
		const uint32_t node = where->parts[i].node;
		int error = rc ? rc : pack_neighbours(h, t, i, &w.neighbours);

		error = error ? error : head_send_names(h, node);
		if (error)
			h->ops.node_break(h->arg, node, strerror(-error));
		else
			launch_part(h, t, i, &w);
	}
	buf_free(&w.runs);
	buf_free(&w.neighbours);
}

static void launch(struct dvm_head *h, struct head_task *t)
{
	static const struct whereabouts one_node;

	task_move(h, t, TASK_LAUNCHED);
	if (t->run->placement->count > 1)
		launch_parts(h, t);
	else
		launch_part(h, t, 0, &one_node);
	if (t->cancelled || t->run->loss) /* since it was placed */
		task_signal_parts(h, t, 0);
}

/* Tasks to launch are the last of h->running, in the order of their starts. */
void tasks_launch(struct dvm_head *h)
{
	struct head_task *t = h->running ? h->running->prev : NULL;

	while (t && t->state == TASK_PLACED && t != h->running && t->prev->state == TASK_PLACED)
		t = t->prev;
	for (; t && t->state == TASK_PLACED; t = t->next) {
		if (h->options.once && !journal_is_safe(h, t->run->start_at))
			break;
		launch(h, t);
	}
}

void task_adopt(struct dvm_head *h, struct head_task *t,
		struct ledger_placement *placement, uint64_t started_ns)
{
	struct task_run *run = t->run;

	queue_remove(h->queue, &t->item);
	task_move(h, t, TASK_LAUNCHED);
	run->placement = placement;
	run->parts_left = placement->count;
	run->placed_ns = run->placed_ns ? run->placed_ns : started_ns;
	run->started_ns = started_ns;
	journal_start(h, t);
	if (t->cancelled)
		task_signal_parts(h, t, 0);
}

void task_lose_rest(struct dvm_head *h, struct head_task *t, bool once)
{
	t->run->losses = once ? HEAD_INSTANCES_MAX : t->run->losses + 1;
	t->run->loss = LOSS_STARTED;
	t->status = SIGKILL;
	task_set_why(t, "the task was on nodes that were lost with the head");
	task_signal_parts(h, t, SIGKILL);
}
