/* SPDX-License-Identifier: BSD-3-Clause */
/* One task with PMI on this node. */
#include "dvm/node/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "libio/fd.h"
#include "libpmi/mapping.h"
#include "libpmi/rc.h"
#include "libshm/region.h"
#include "pmi2x-build.h"

/* ---- failing ---- */

static void tell_failure(const struct task *t, uint32_t rank, bool asked, int code,
			 const char *why)
{
	const struct node_failure f = {
		.asked = asked,
		.status = (code & 0xff ? code & 0xff : 1) << 8,
		.rank = rank,
		.why = why,
	};

	t->host->failed(t->host->arg, t, &f);
}

static void fail(const struct task *t, uint32_t rank, int code, const char *why)
{
	tell_failure(t, rank, false, code, why);
}

/* ---- requests of ranks to their spawner ---- */

static int say_head(const struct task *t, const struct dvm_msg *m, size_t max)
{
	struct buf out;
	int rc;

	buf_init(&out, max);
	rc = dvm_msg_pack(&out, m);
	rc = rc ? rc : t->host->ops.say_head(t->host->ops_arg, out.data, out.len);
	buf_free(&out);
	return rc;
}

static void on_reply(void *arg, void *link, const void *data, size_t len)
{
	struct task *t = arg;
	struct payload *frame = payload_copy(data, len);

	if (frame)
		agent_control(t->agent, frame);
	else
		fail(t, 0, 1, "no memory for an answer to a rank");
	payload_unref(frame);
}

static int ask_spawn(struct task *t, uint32_t token, const struct spawn_request *r)
{
	struct dvm_msg m = {
		.type = DVM_SPAWN,
		.spawn = { .task = t->key.task, .instance = (uint32_t)t->key.instance,
			   .token = token, .ranks = spawn_procs(r) },
	};
	struct buf argv, about;
	int rc;

	buf_init(&argv, DVM_COMMAND_MAX);
	buf_init(&about, DVM_SPAWN_MAX);
	rc = spawn_put_argv(&argv, r);
	rc = rc ? rc : spawn_put_about(&about, r, t->jobid);
	m.spawn.argv = (struct dvm_bytes){ argv.data, argv.len };
	m.spawn.about = (struct dvm_bytes){ about.data, about.len };
	rc = rc ? rc : say_head(t, &m, DVM_COMMAND_MAX + DVM_SPAWN_MAX + DVM_TEXT_MAX);
	buf_free(&argv);
	buf_free(&about);
	return rc;
}

static int on_spawn(void *arg, uint32_t token, const struct spawn_request *request)
{
	struct task *t = arg;
	int rc = ask_spawn(t, token, request);

	spawn_note_ignored(request, t->host->log);
	if (rc)
		log_error(t->host->log, "task %s: a spawn is rejected: %s", t->jobid,
			  rc == -ENOBUFS || rc == -EMSGSIZE ?
				  "the command or the preput values are too long" :
				  strerror(-rc));
	return rc;
}

void task_spawn_told(struct task *t, const struct dvm_spawned *m)
{
	char text[DVM_TEXT_MAX];

	if (t->left || !t->launcher)
		return;
	if (m->why.len)
		snprintf(text, sizeof(text), "%.*s", (int)m->why.len,
			 (const char *)m->why.data);
	else
		dvm_jobid(text, t->host->dvm, m->spawned, m->spawned_instance);
	if (m->why.len)
		log_error(t->host->log, "task %s: a spawn failed: %s", t->jobid, text);
	step_services_spawned(t->launcher, m->token,
			      m->why.len ? PMI_RC_FAIL : PMI_RC_OK,
			 text);
}

static void on_abort(void *arg, uint32_t rank, int code, const char *text)
{
	const struct task *t = arg;
	char why[DVM_TEXT_MAX];

	if (rank == CONTROL_NO_RANK || rank == CONTROL_KEY_WAITS) {
		fail(t, 0, code, text);
		return;
	}
	snprintf(why, sizeof(why), "rank %u called abort%s%.900s", rank,
		 *text ? ": " : "", text);
	tell_failure(t, rank, true, code, why);
}

static void on_report(void *arg, const char *text)
{
	const struct task *t = arg;

	log_error(t->host->log, "task %s: %s", t->jobid, text);
}

void task_head_lost(struct task *t)
{
	if (t->launcher && !t->left)
		step_services_fail_all(t->launcher, "the head of the DVM is lost");
}

/* NULL: the rank is ready. */
static void on_not_ready(void *arg, const char *why)
{
	const struct task *t = arg;
	const struct dvm_msg m = {
		.type = DVM_READY,
		.ready = { t->key.task, (uint32_t)t->key.instance,
			   { why, why ? strlen(why) : 0 } },
	};

	(void)say_head(t, &m, 2 * DVM_TEXT_MAX);
}

static void on_ready(void *arg)
{
	on_not_ready(arg, NULL);
}

static int on_forward(void *arg, uint32_t token, const void *data, size_t len)
{
	const struct task *t = arg;
	const struct dvm_msg m = {
		.type = DVM_NAMES,
		.names = { t->key.task, (uint32_t)t->key.instance, { data, len } },
	};

	return len > DVM_NAMES_MAX ? -EMSGSIZE : say_head(t, &m, DVM_NAMES_MAX + DVM_TEXT_MAX);
}

void task_names_told(struct task *t, const void *data, size_t len)
{
	struct control_msg m;

	if (t->left || !t->launcher || control_unpack(data, len, &m))
		return;
	if (m.type == CONTROL_REPLY)
		step_services_forwarded(t->launcher, m.id, data, len);
	control_free(&m);
}

static int open_srun_library(struct task *t)
{
	static const struct step_services_ops ops = {
		.reply = on_reply, .spawn = on_spawn, .abort = on_abort,
		.report = on_report, .ready = on_ready,
		.not_ready = on_not_ready, .forward = on_forward,
	};

	if (t->launcher)
		return 0;
	return step_services_create(&t->launcher, &ops, t, t->setup.step.hash_seed,
			       t->host->log);
}

static void deliver(struct task *t)
{
	struct payload_vec frames = t->control;
	int rc = frames.count ? open_srun_library(t) : 0;

	payload_vec_init(&t->control);
	for (size_t i = 0; !rc && i < frames.count; i++)
		rc = step_services_receive(t->launcher, t, frames.items[i]->data,
				      frames.items[i]->len);
	payload_vec_clear(&frames);
	if (rc)
		fail(t, 0, 1, strerror(-rc));
}

static void on_soon(uv_timer_t *timer)
{
	deliver(timer->data);
}

/* Called from the loop: an agent must not be called back. */
static int on_control(void *arg, struct payload *frame)
{
	struct task *t = arg;
	int rc = t->left ? -ENOTCONN : payload_vec_add(&t->control, frame);

	return rc ? rc : uv_timer_start(&t->soon, on_soon, 0, 0);
}

/* ---- host of the agent ---- */

static void on_kill_step(void *arg, const char *why)
{
	fail(arg, 0, 1, why);
}

static void tell_end(struct task *t, uint32_t slot)
{
	const struct pmi_exit end = { .status = t->ends[slot].status };

	agent_rank_ended(t->agent, slot, &end);
}

static void on_ask_rank_end(void *arg, uint32_t slot)
{
	struct task *t = arg;

	if (slot < t->ranks && t->ends[slot].known)
		tell_end(t, slot);
}

/* ---- other nodes of the task ---- */

static int on_send(void *arg, uint32_t position, enum frame_type type,
		   const void *head, size_t head_len, const struct payload_vec *body)
{
	const struct task *t = arg;
	const struct pmi_step *s = &t->setup.step;
	const struct dvm_address *to = task_nodes_address(&t->nodes, position);
	const struct pool_frame f = {
		t->key.task, (uint32_t)t->key.instance, s->position, type, head,
		head_len,
	};

	if (!to)
		return -EHOSTUNREACH;
	return t->host->ops.send(t->host->ops_arg, task_nodes_node(&t->nodes, position), to, &f,
				 body);
}

static void on_pmix_send(void *arg, const void *head, size_t len, struct payload *data)
{
	const struct task *t = arg;

	t->host->ops.pmix_send(t->host->ops_arg, t->part, head, len, data);
}

/* ---- leaving ---- */

static void on_closed_again(uv_handle_t *handle)
{
	task_destroy(handle->data);
}

/*
 * The agent's handles have been closed with this one: the agent is free in the next turn.
 */
static void on_closed(uv_handle_t *handle)
{
	struct task *t = handle->data;

	uv_timer_init(loop_uv(t->host->loop), &t->soon);
	uv_close(handle, on_closed_again);
}

static void close_when_done(struct task *t)
{
	if (!(t->left || !t->served) || !t->over || t->closing)
		return;
	t->closing = true;
	silent_end(t->silent, NULL);
	deliver(t); /* the last message may have the reason */
	uv_close((uv_handle_t *)&t->soon, on_closed);
	t->host->gone(t->host->arg, t);
}

static void on_left(void *arg)
{
	struct task *t = arg;

	t->left = true;
	close_when_done(t);
}

/* ---- serving ---- */

static void on_silent(void *arg, struct registration *reg)
{
	const struct task *t = arg;

	if (t->agent)
		agent_rank_registered(t->agent, reg);
}

static int make_agent(struct task *t)
{
	const struct agent_host host = {
		.kill_step = on_kill_step, .ask_rank_end = on_ask_rank_end,
		.control = on_control, .send = t->nodes.count > 1 ? on_send : NULL,
		.pmix_send = t->host->ops.pmix_send ? on_pmix_send : NULL,
		.left = on_left, .arg = t,
	};
	struct agent_fds fds = { t->registration, -1, -1, region_object_create(), -1, -1, -1, -1 };
	int rc = agent_open(&t->agent, t->host->loop, &t->setup, &fds, &host,
			    t->host->log);

	if (t->agent)
		t->registration = -1; /* agent_open takes it over, also on failure */
	else
		fd_close(&fds.region);
	return t->agent ? 0 : rc;
}

/* Called once. */
static void serve(struct task *t)
{
	int rc;

	if (t->served)
		return;
	t->served = true;
	rc = make_agent(t);
	silent_end(t->silent, on_silent);
	if (!rc)
		return;
	t->left = true;
	fail(t, 0, 126, strerror(-rc));
}

static void on_spoken(void *arg, int error)
{
	struct task *t = arg;

	serve(t);
	if (error)
		fail(t, 0, 126, strerror(-error));
}

void task_frame(struct task *t, uint32_t node, const struct pool_frame *f,
		struct payload *body)
{
	if (f->from >= t->nodes.count || task_nodes_node(&t->nodes, f->from) != node)
		return;
	serve(t);
	if (t->agent)
		agent_frame(t->agent, f->from, f->type, f->head, f->head_len, body);
}

int task_pmix_message(struct task *t, struct payload *message)
{
	serve(t);
	return t->agent ? agent_pmix_message(t->agent, message) : 0;
}

void task_pmix_lost(struct task *t, const char *why)
{
	fail(t, 0, 1, why);
	if (t->agent)
		agent_pmix_lost(t->agent, why);
}

void task_node_lost(struct task *t, uint32_t node, const char *why)
{
	uint32_t index = t->agent && t->nodes.count > 1 ? task_nodes_index(&t->nodes, node) :
							  UINT32_MAX;
	char text[DVM_TEXT_MAX];

	if (index == UINT32_MAX)
		return;
	snprintf(text, sizeof(text), "node %.64s: %.300s", t->nodes.names[index], why);
	agent_neighbour_lost(t->agent, index, text);
}

/* ---- life ---- */

static int make_texts(struct task *t, const struct dvm_launch *m)
{
	struct pmi_step *s = &t->setup.step;

	t->mapping = mapping_create(s->layout);
	t->ends = calloc(t->ranks, sizeof(*t->ends));
	if (!t->ends)
		return -ENOMEM;
	dvm_jobid(t->jobid, t->host->dvm, m->task, m->instance);
	s->jobid = t->jobid;
	s->mapping = t->mapping;
	s->node_names = (const char *const *)t->nodes.names;
	return getrandom(&s->hash_seed, sizeof(s->hash_seed), 0) ==
	       sizeof(s->hash_seed) ? 0 : -EIO;
}

static int describe_step(struct task *t, const struct dvm_launch *m)
{
	struct pmi_step *s = &t->setup.step;
	int rc = task_nodes_read(&t->nodes, m, t->host->node, t->host->ops.name,
				 t->host->ops_arg);

	if (rc)
		return rc;
	s->layout = t->nodes.layout;
	s->position = m->node;
	layout_ranks_at(s->layout, s->position, &t->ranks);
	s->universe_size = m->universe;
	s->build = PMI2X_BUILD;
	s->budget = &t->budget;
	rc = make_texts(t, m);
	if (rc || !m->spawned.len)
		return rc;
	rc = spawn_origin_read(&t->origin, &m->spawned, m->ranks);
	if (!rc)
		spawn_origin_describe(&t->origin, s);
	return rc;
}

/* The head notices the loss of the node, and ends the task. */
static void choose_options(struct task *t)
{
	struct agent_options *o = &t->setup.options;

	agent_options_init(o);
	o->end_on_failure = true;
	o->no_kill = true;
	o->exits_known = true;
	budget_init(&t->budget, o->buffer_limit, "", t->host->log);
}

struct task *task_create(const struct task_host *host, uint32_t part,
			 const struct dvm_launch *m, int registration)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t) {
		close(registration);
		return NULL;
	}
	t->part = part;
	t->key = (struct task_key){ m->task, m->instance };
	t->host = host;
	t->registration = registration;
	payload_vec_init(&t->control);
	choose_options(t);
	if (!describe_step(t, m))
		return t;
	task_destroy(t);
	return NULL;
}

void task_begin(struct task *t)
{
	const struct silent_ops ops = { on_spoken, t->setup.step.spawned, t };
	int rc;

	uv_timer_init(loop_uv(t->host->loop), &t->soon);
	t->soon.data = t;
	rc = silent_open(&t->silent, t->host->silent, t->registration, t->ranks, &ops,
			 t->host->log);
	if (rc)
		fail(t, 0, 126, strerror(-rc));
}

void task_rank_ended(struct task *t, uint32_t slot, int32_t status)
{
	if (slot >= t->ranks)
		return;
	t->ends[slot] = (struct rank_end){ true, status };
	if (t->agent)
		tell_end(t, slot);
}

void task_status(struct task *t, struct buf *out)
{
	size_t before = out->len;

	if (t->agent && agent_status(t->agent, out))
		out->len = before;
}

void task_over(struct task *t)
{
	if (!t->served && t->silent)
		silent_reaped(t->silent);
	t->over = true;
	if (t->agent)
		agent_leave(t->agent);
	close_when_done(t);
}

void task_leave_alone(struct task *t)
{
	t->over = true;
	if (t->agent)
		agent_host_died(t->agent);
	close_when_done(t);
}

void task_destroy(struct task *t)
{
	agent_free(t->agent);
	silent_destroy(t->silent);
	step_services_destroy(t->launcher);
	payload_vec_clear(&t->control);
	fd_close(&t->registration);
	task_nodes_free(&t->nodes);
	free(t->mapping);
	spawn_origin_free(&t->origin);
	free(t->ends);
	free(t);
}
