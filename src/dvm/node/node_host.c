/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvmd: hosts the node's state machine (core/node.h). The zygote starts the ranks: it
 * gets orders, and this process never waits for it. Output and PMI of the ranks are served
 * here. After each turn of the loop with new input, the node gets a turn.
 */
#include "dvm/node/dvmd.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "dvm/node/tree_link.h"
#include "libio/clock.h"
#include "libio/fd.h"
#include "libio/proc_stat.h"
#include "libio/registration.h"

#define FOR_ZYGOTE_MAX (2 * DVM_LAUNCH_MAX) /* bytes of messages */

/* An event of a part's PMI; it may come during a call of the node's. */
struct pmi_event {
	enum { PMI_FAILED, PMI_OVER, PMI_FAILED_LATE } what;
	uint32_t part;
	uint64_t task; /* of PMI_FAILED_LATE */
	uint32_t instance;
	struct node_failure failure;
	struct pmi_event *prev, *next;
	char why[];
};

struct dvm_time dvmd_now(void)
{
	return (struct dvm_time){
		.wall_ns = (uint64_t)clock_ns(CLOCK_REALTIME),
		.ms = clock_ms(CLOCK_MONOTONIC),
	};
}

void dvmd_node_changed(struct dvmd *d)
{
	d->changed = true;
}

/* ---- operations of the node: the zygote ---- */

static void tell_zygote(struct dvmd *d, const struct dvm_msg *m)
{
	if (dvm_msg_pack(&d->for_zygote, m))
		d->leaves = true;
}

/* Send the zygote its messages, with descriptors or without. */
static void flush_zygote(struct dvmd *d, const struct passed_fds *fds)
{
	if (d->for_zygote.len && d->channel &&
	    channel_send_fds(d->channel, d->for_zygote.data, d->for_zygote.len, fds))
		d->leaves = true;
	buf_clear(&d->for_zygote);
}

static void on_profile(void *arg, const struct dvm_profile_msg *profile)
{
	tell_zygote(arg, &(struct dvm_msg){ .type = DVM_PROFILE, .profile = *profile });
}

static void on_forget(void *arg, uint32_t number)
{
	tell_zygote(arg, &(struct dvm_msg){ .type = DVM_FORGET, .profile = { number } });
}

static void on_start(void *arg, const struct node_start *what)
{
	const struct dvm_msg m = {
		.type = DVM_EXEC,
		.exec = { what->part, what->first, what->profile->number,
			  node_wants_pmi(what->launch), what->message },
	};
	struct dvmd *d = arg;
	struct passed_fds fds;

	outputs_of(d->outputs, what->part, &fds);
	tell_zygote(d, &m);
	flush_zygote(d, &fds);
}

static void on_all_started(void *arg, uint32_t part)
{
	struct dvmd *d = arg;

	outputs_started(d->outputs, part);
}

static void on_give_up(void *arg, uint32_t part)
{
	tell_zygote(arg, &(struct dvm_msg){ .type = DVM_GIVE_UP, .give_up = part });
}

static void on_signal(void *arg, uint32_t part, int number)
{
	tell_zygote(arg, &(struct dvm_msg){
		.type = DVM_KILL, .kill = { part, (uint32_t)number } });
	dvmd_kill_soon(arg, part, number);
}

static void on_look(void *arg, uint64_t process, struct dvm_rank *out)
{
	struct proc_stat now;

	if (proc_stat_read(process, &now))
		out->state = now.state;
	out->cpu_us = (now.user + now.system) * 1000000 / (unsigned long)sysconf(_SC_CLK_TCK);
}

/* ---- operations of the node: the head ---- */

/* A failure needs no handling here: the link reports that the head is lost. */
static void on_send(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;

	if (!d->joined && *(const uint8_t *)data != DVM_REGISTER)
		return; /* the message was for an earlier head */
	if (!d->joined)
		dvmd_join(d);
	if (dvmd_send_head(d, data, len) == -ENOMEM)
		d->leaves = true;
}

static bool on_takes_output(void *arg)
{
	const struct dvmd *d = arg;

	if (d->tree && !dvmd_tree_is_attached(d))
		return false;
	return !d->head || !link_queued(d->head);
}

static void on_leave(void *arg)
{
	struct dvmd *d = arg;

	d->leaves = true;
}

/* ---- operations of the node: output and PMI ---- */

static int on_open_output(void *arg, uint32_t part)
{
	struct dvmd *d = arg;

	return outputs_open(d->outputs, part);
}

static void on_close_output(void *arg, uint32_t part)
{
	struct dvmd *d = arg;

	outputs_close(d->outputs, part);
}

static void on_limit_output(void *arg, uint32_t part, size_t bytes)
{
	struct dvmd *d = arg;

	outputs_limit(d->outputs, part, bytes);
}

static int on_keep_output(void *arg, uint32_t part, const struct node_keep *what)
{
	struct dvmd *d = arg;

	return output_writers_begin(d->writers, part, what);
}

static void on_write_output(void *arg, uint32_t part, int fd, const void *data, size_t len)
{
	struct dvmd *d = arg;

	output_writers_write(d->writers, part, fd, data, len);
}

static void on_end_output(void *arg, uint32_t part)
{
	struct dvmd *d = arg;

	output_writers_end(d->writers, part);
}

static uint32_t on_output_stall_ms(void *arg, uint32_t part)
{
	struct dvmd *d = arg;

	return output_writers_stall_ms(d->writers, part);
}

static int on_open_pmi(void *arg, uint32_t part, const struct dvm_launch *l)
{
	struct dvmd *d = arg;
	int ours, theirs, rc = registration_open(0, &ours, &theirs);

	if (rc)
		return rc;
	outputs_pass(d->outputs, part, theirs);
	return tasks_begin(d->tasks, part, l, ours);
}

static void on_pmi_rank_ended(void *arg, uint32_t part, uint32_t slot, int32_t status)
{
	struct dvmd *d = arg;

	tasks_rank_ended(d->tasks, part, slot, status);
}

static void on_close_pmi(void *arg, uint32_t part)
{
	struct dvmd *d = arg;

	tasks_over(d->tasks, part);
}

static void on_pmi_status(void *arg, uint32_t part, struct buf *out)
{
	struct dvmd *d = arg;

	tasks_status(d->tasks, part, out);
}

/* ---- events of PMI ---- */

static void add_event(struct dvmd *d, const struct pmi_event *what)
{
	const char *why = what->failure.why ? what->failure.why : "";
	struct pmi_event *e = malloc(sizeof(*e) + strlen(why) + 1);

	if (!e) {
		d->leaves = true;
		return;
	}
	*e = *what;
	strcpy(e->why, why);
	e->failure.why = e->why;
	DL_APPEND(d->events, e);
	dvmd_node_changed(d);
}

void dvmd_pmi_failed(void *arg, uint32_t part, const struct node_failure *f)
{
	add_event(arg, &(struct pmi_event){ .what = PMI_FAILED, .part = part, .failure = *f });
}

void dvmd_pmi_failed_late(void *arg, uint64_t task, uint32_t instance,
			  const struct node_failure *f)
{
	add_event(arg, &(struct pmi_event){
		.what = PMI_FAILED_LATE, .task = task, .instance = instance, .failure = *f });
}

void dvmd_pmi_over(void *arg, uint32_t part)
{
	add_event(arg, &(struct pmi_event){ .what = PMI_OVER, .part = part });
}

static void take_event(struct dvmd *d, const struct pmi_event *e)
{
	if (e->what == PMI_FAILED)
		dvm_node_pmi_failed(d->node, e->part, &e->failure, dvmd_now());
	else if (e->what == PMI_OVER)
		dvm_node_pmi_over(d->node, e->part, dvmd_now());
	else
		dvm_node_failed_late(d->node, e->task, e->instance, &e->failure);
}

static void take_events(struct dvmd *d)
{
	struct pmi_event *e;

	while ((e = d->events)) {
		DL_DELETE(d->events, e);
		take_event(d, e);
		free(e);
	}
}

/* ---- messages of the zygote ---- */

static int take_started(struct dvmd *d, const struct dvm_processes *m)
{
	const uint32_t count = (uint32_t)(m->numbers.len / sizeof(uint64_t));
	uint64_t *numbers = malloc(m->numbers.len + 1);

	if (!numbers)
		return -ENOMEM;
	if (count)
		memcpy(numbers, m->numbers.data, count * sizeof(*numbers));
	dvm_node_started(d->node, m->part, numbers, count, m->error, dvmd_now());
	free(numbers);
	return 0;
}

static void take_exited(struct dvmd *d, const struct dvm_exited *m)
{
	char why[DVM_TEXT_MAX];
	struct node_end end = {
		.status = m->status, .user_us = m->user_us, .system_us = m->system_us,
		.peak_kib = m->peak_kib, .lacks = m->lacks,
	};

	if (m->why.len) {
		snprintf(why, sizeof(why), "%.*s", (int)m->why.len, (const char *)m->why.data);
		end.why = why;
	}
	(void)dvm_node_ended(d->node, m->part, m->slot, &end, dvmd_now());
}

static void take_resources(struct dvmd *d, const struct ledger_resources *has)
{
	const struct dvm_register r = {
		.version = DVM_VERSION,
		.has = *has,
		.port = pool_port(d->pool),
		.name = { d->name, strlen(d->name) },
		.build = { d->self.build, strlen(d->self.build) },
	};

	dvm_node_register(d->node, &r);
}

static int take(struct dvmd *d, const struct dvm_msg *m)
{
	switch (m->type) {
	case DVM_RESOURCES:
		take_resources(d, &m->resources);
		return 0;
	case DVM_PROCESSES:
		return take_started(d, &m->processes);
	case DVM_EXITED:
		take_exited(d, &m->exited);
		return 0;
	default:
		return -EPROTO;
	}
}

int dvmd_zygote_says(void *arg, const void *data, size_t len)
{
	struct dvmd *d = arg;
	struct dvm_msg m;
	struct cursor c;
	int rc = 0;

	dvmd_take_signals(d);
	cursor_init(&c, data, len);
	while (!rc && cursor_left(&c)) {
		rc = dvm_msg_unpack(&c, &m);
		rc = rc ? rc : take(d, &m);
	}
	dvmd_node_changed(d);
	return rc;
}

/* ---- turns ---- */

static void on_output(void *arg, uint32_t part, int fd, const void *data, size_t len)
{
	struct dvmd *d = arg;

	dvm_node_output(d->node, part, fd, data, len);
	dvmd_node_changed(d);
}

static void on_full(void *arg, uint32_t part, bool full)
{
	struct dvmd *d = arg;

	outputs_limit(d->outputs, part, full ? 0 : SIZE_MAX);
}

static void on_kept(void *arg, uint32_t part, const struct node_kept *kept)
{
	struct dvmd *d = arg;

	dvm_node_kept(d->node, part, kept, dvmd_now());
	dvmd_node_changed(d);
}

static void on_due(uv_timer_t *timer)
{
	dvmd_node_changed(timer->data);
}

static void turn(struct dvmd *d)
{
	int left;

	do {
		d->changed = false;
		take_events(d);
		left = dvm_node_turn(d->node, dvmd_now());
	} while (d->changed);
	flush_zygote(d, NULL);
	if (left < 0)
		uv_timer_stop(&d->due);
	else
		uv_timer_start(&d->due, on_due, (uint64_t)left, 0);
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct dvmd *d = prepare->data;

	if (d->changed)
		turn(d);
	if (d->leaves)
		dvmd_leave(d);
}

/* ---- life ---- */

int dvmd_open_node(struct dvmd *d)
{
	static const struct dvm_node_ops ops = {
		.send = on_send,
		.takes_output = on_takes_output,
		.profile = on_profile,
		.forget = on_forget,
		.open_output = on_open_output,
		.limit_output = on_limit_output,
		.close_output = on_close_output,
		.keep_output = on_keep_output,
		.write_output = on_write_output,
		.end_output = on_end_output,
		.output_stall_ms = on_output_stall_ms,
		.open_pmi = on_open_pmi,
		.pmi_rank_ended = on_pmi_rank_ended,
		.close_pmi = on_close_pmi,
		.pmi_status = on_pmi_status,
		.start = on_start,
		.all_started = on_all_started,
		.give_up = on_give_up,
		.look = on_look,
		.signal = on_signal,
		.leave = on_leave,
	};
	static const struct output_writers_ops writers_ops = { .full = on_full, .kept = on_kept };
	uv_loop_t *loop = loop_uv(d->loop);
	int rc = outputs_create(&d->outputs, loop, on_output, d);

	rc = rc ? rc : output_writers_create(&d->writers, loop, OUTPUT_WRITER_STALL_MS,
					     &writers_ops, d);
	rc = rc ? rc : dvm_node_create(&d->node, &ops, d);
	if (rc)
		return rc;
	buf_init(&d->for_zygote, FOR_ZYGOTE_MAX);
	uv_timer_init(loop, &d->due);
	uv_timer_init(loop, &d->unread);
	uv_prepare_init(loop, &d->prepare);
	d->due.data = d->unread.data = d->prepare.data = d;
	return uv_prepare_start(&d->prepare, on_prepare);
}

void dvmd_close_node(struct dvmd *d)
{
	outputs_end(d->outputs);
	output_writers_close(d->writers);
	if (!d->node || uv_is_closing((uv_handle_t *)&d->due))
		return;
	uv_close((uv_handle_t *)&d->due, NULL);
	uv_close((uv_handle_t *)&d->unread, NULL);
	uv_close((uv_handle_t *)&d->prepare, NULL);
}

void dvmd_free_node(struct dvmd *d)
{
	struct pmi_event *e;

	while ((e = d->events)) {
		DL_DELETE(d->events, e);
		free(e);
	}
	dvmd_forget_kills(d);
	dvm_node_destroy(d->node);
	outputs_destroy(d->outputs);
	output_writers_destroy(d->writers);
	buf_free(&d->for_zygote);
}
