/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of tasks that have PMI. */
#include "dvm/node/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include <utlist.h>

#include "dvm/common/pmix_offer.h"
#include "dvm/core/dvm_msg.h"
#include "dvm/node/task.h"

#define ENDED_KEPT 1024 /* ended tasks that are remembered */
#define EARLY_MS 60000  /* a frame waits for its task */
#define EARLY_MAX ((size_t)64 << 20) /* bytes of these frames */

/* A frame whose task is not known yet. */
struct early {
	uint32_t node;
	struct pool_frame frame;
	struct payload *head, *body;
	uint64_t since; /* loop time, ms */
	struct early *prev, *next;
};

struct ended {
	struct task_key key;
	uint32_t position; /* of this node, in the task */
};

struct tasks {
	struct loop *loop;
	struct task_host host; /* for all tasks */
	struct task *all;      /* by part; task.h */
	struct task *by_key;
	struct early *early;   /* oldest first */
	size_t early_bytes;
	struct ended ended[ENDED_KEPT];
	uint32_t next_ended;
	bool closed;
};

/* ---- events of tasks ---- */

/* Report it also when the task has ended here: other nodes may not know. */
static void on_failed(void *arg, const struct task *task, const struct node_failure *f)
{
	const struct tasks *t = arg;

	if (t->closed)
		return;
	if (task->over && task->nodes.count > 1)
		t->host.ops.failed_late(t->host.ops_arg, task->key.task, (uint32_t)task->key.instance, f);
	else
		t->host.ops.failed(t->host.ops_arg, task->part, f);
}

static void remember_ended(struct tasks *t, const struct task *task)
{
	t->ended[t->next_ended] = (struct ended){
		task->key, task->setup.step.position,
	};
	t->next_ended = (t->next_ended + 1) % ENDED_KEPT;
}

static void on_gone(void *arg, struct task *task)
{
	struct tasks *t = arg;

	if (!t->closed)
		t->host.ops.over(t->host.ops_arg, task->part);
	remember_ended(t, task);
	if (t->host.ops.pmix_drop)
		t->host.ops.pmix_drop(t->host.ops_arg, task->part);
	HASH_DEL(t->all, task);
	HASH_DELETE(hh_key, t->by_key, task);
}

/* ---- frames of other daemons ---- */

static struct task *find_by_key(struct tasks *t, const struct task_key *key)
{
	struct task *task;

	HASH_FIND(hh_key, t->by_key, key, sizeof(*key), task);
	return task;
}

static struct task_key key_of(const struct pool_frame *f)
{
	return (struct task_key){ f->task, f->instance };
}

static bool same_key(const struct task_key *a, const struct task_key *b)
{
	return a->task == b->task && a->instance == b->instance;
}

static const struct ended *find_ended(const struct tasks *t, const struct task_key *key)
{
	for (uint32_t i = 0; i < ENDED_KEPT; i++)
		if (same_key(&t->ended[i].key, key))
			return &t->ended[i];
	return NULL;
}

/* Send a goodbye for this node: a process that waits for the node would wait forever. */
static void say_goodbye(struct tasks *t, uint32_t node, const struct pool_frame *to,
			uint32_t from)
{
	static const uint64_t dealt_with;
	const struct pool_frame f = {
		to->task, to->instance, from, FRAME_GOODBYE, NULL, 0,
	};
	struct payload *bytes = payload_copy(&dealt_with, sizeof(dealt_with));
	struct payload_vec body;

	payload_vec_init(&body);
	if (bytes && !payload_vec_add(&body, bytes))
		(void)t->host.ops.send(t->host.ops_arg, node, NULL, &f, &body);
	payload_vec_clear(&body);
	payload_unref(bytes);
}

static size_t early_size(const struct early *e)
{
	return sizeof(*e) + e->head->len + (e->body ? e->body->len : 0);
}

static void drop_early(struct tasks *t, struct early *e)
{
	DL_DELETE(t->early, e);
	t->early_bytes -= early_size(e);
	payload_unref(e->head);
	payload_unref(e->body);
	free(e);
}

static int keep_early(struct tasks *t, uint32_t node, const struct pool_frame *f,
		      struct payload *body)
{
	uint64_t now = uv_now(loop_uv(t->loop));
	struct early *e = malloc(sizeof(*e));

	while (t->early && now - t->early->since > EARLY_MS)
		drop_early(t, t->early);
	if (!e)
		return -ENOMEM;
	*e = (struct early){ .node = node, .frame = *f, .since = now };
	e->head = payload_copy(f->head, f->head_len);
	e->body = payload_ref(body);
	if (!e->head) {
		payload_unref(body);
		free(e);
		return -ENOMEM;
	}
	e->frame.head = e->head->data;
	DL_APPEND(t->early, e);
	t->early_bytes += early_size(e);
	return t->early_bytes > EARLY_MAX ? -ENOBUFS : 0;
}

static void deliver_early(struct tasks *t, struct task *task)
{
	struct early *e, *next;
	struct task_key key;

	DL_FOREACH_SAFE(t->early, e, next) {
		key = key_of(&e->frame);
		if (!same_key(&key, &task->key))
			continue;
		task_frame(task, e->node, &e->frame, e->body);
		drop_early(t, e);
	}
}

int tasks_frame(struct tasks *t, uint32_t node, const struct pool_frame *f,
		struct payload *body)
{
	struct task_key key = key_of(f);
	struct task *task = find_by_key(t, &key);
	const struct ended *ended = task ? NULL : find_ended(t, &key);

	if (task)
		task_frame(task, node, f, body);
	else if (ended && f->type != FRAME_GOODBYE)
		say_goodbye(t, node, f, ended->position);
	else if (!ended)
		return keep_early(t, node, f, body);
	return 0;
}

void tasks_node_lost(struct tasks *t, uint32_t node, const char *why)
{
	struct task *task, *next;

	HASH_ITER(hh, t->all, task, next)
		task_node_lost(task, node, why);
}

/* ---- messages of the head ---- */

void tasks_head_says(struct tasks *t, const void *data, size_t len)
{
	struct task *task;
	struct dvm_msg m;
	struct cursor c;

	cursor_init(&c, data, len);
	if (dvm_msg_unpack(&c, &m))
		return;
	if (m.type == DVM_NAMES) {
		task = find_by_key(t, &(struct task_key){ m.names.task,
							  m.names.instance });
		if (task)
			task_names_told(task, m.names.data.data, m.names.data.len);
	} else if (m.type == DVM_SPAWNED) {
		task = find_by_key(t, &(struct task_key){ m.spawned.task,
							  m.spawned.instance });
		if (task)
			task_spawn_told(task, &m.spawned);
	}
}

void tasks_head_lost(struct tasks *t)
{
	struct task *task, *next;

	HASH_ITER(hh, t->all, task, next)
		task_head_lost(task);
}

/* ---- calls of the node ---- */

static struct task *find(struct tasks *t, uint32_t part)
{
	struct task *task;

	HASH_FIND(hh, t->all, &part, sizeof(part), task);
	return task;
}

/* 0 or -ENOMEM. */
static int list_task(struct tasks *t, struct task *task)
{
	HASH_ADD(hh, t->all, part, sizeof(task->part), task);
	if (!task->hh.tbl)
		return -ENOMEM;
	HASH_ADD(hh_key, t->by_key, key, sizeof(task->key), task);
	if (task->hh_key.tbl)
		return 0;
	HASH_DELETE(hh, t->all, task);
	return -ENOMEM;
}

int tasks_begin(struct tasks *t, uint32_t part, const struct dvm_launch *l, int registration)
{
	struct task *task = task_create(&t->host, part, l, registration);

	if (!task)
		return -ENOMEM;
	if (list_task(t, task)) {
		task_destroy(task);
		return -ENOMEM;
	}
	task_begin(task);
	deliver_early(t, task);
	return 0;
}

void tasks_rank_ended(struct tasks *t, uint32_t part, uint32_t slot, int32_t status)
{
	task_rank_ended(find(t, part), slot, status);
}

void tasks_over(struct tasks *t, uint32_t part)
{
	task_over(find(t, part));
}

void tasks_status(struct tasks *t, uint32_t part, struct buf *out)
{
	task_status(find(t, part), out);
}

/* ---- messages of pmi2x-pmixd ---- */

bool tasks_pmix_find(const struct tasks *t, uint32_t address, uint32_t *part)
{
	for (const struct task *task = t->all; task; task = task->hh.next) {
		*part = task->part;
		if (pmix_offer_address(*part, false) == address)
			return true;
	}
	return false;
}

int tasks_pmix_message(struct tasks *t, uint32_t part, struct payload *message)
{
	struct task *task = find(t, part);

	return task ? task_pmix_message(task, message) : 0;
}

void tasks_pmix_lost(struct tasks *t, uint32_t part, const char *why)
{
	struct task *task = find(t, part);

	if (task)
		task_pmix_lost(task, why);
}

/* ---- life ---- */

int tasks_open(struct tasks **out, struct loop *loop, const struct tasks_options *options,
	       const struct tasks_ops *ops, void *arg, const struct log_hook *log)
{
	struct tasks *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return -ENOMEM;
	t->loop = loop;
	t->host = (struct task_host){
		.loop = loop, .dvm = options->dvm, .node = options->node, .log = log,
		.ops = *ops, .ops_arg = arg, .failed = on_failed, .gone = on_gone, .arg = t,
	};
	return epoll_set_open(&t->host.silent, loop_uv(loop));
}

void tasks_close(struct tasks *t)
{
	struct task *task, *next;

	if (!t || t->closed)
		return;
	t->closed = true;
	HASH_ITER(hh, t->all, task, next)
		task_leave_alone(task);
	epoll_set_close(t->host.silent);
	while (t->early)
		drop_early(t, t->early);
}

void tasks_destroy(struct tasks *t)
{
	free(t);
}
