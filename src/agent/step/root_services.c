/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services of srun for a step without one. Requests have come up the tree, and answers
 * go down it from the loop, as those of srun do.
 */
#include "agent/step/root_services.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/step/srun_link.h"
#include "libpmi/rc.h"
#include "libpmi/step_services.h"

struct root_services {
	struct step_services *services;
	struct payload_vec replies; /* that are delivered from the loop */
	uv_timer_t soon;
	uv_timer_t names_due;
};

static void on_soon(uv_timer_t *timer)
{
	struct service *s = timer->data;
	struct payload_vec replies = s->root->replies;

	payload_vec_init(&s->root->replies);
	for (size_t i = 0; i < replies.count; i++)
		(void)s->srun_ops->frame(s, replies.items[i]);
	payload_vec_clear(&replies);
}

/* Without memory for the answer a rank would wait forever. */
static void do_reply(void *arg, void *link, const void *data, size_t len)
{
	struct service *s = arg;
	struct payload *frame = payload_copy(data, len);

	if (!frame || payload_vec_add(&s->root->replies, frame))
		node_give_up(s->node, "cannot answer a request of a rank", -ENOMEM);
	payload_unref(frame);
	uv_timer_start(&s->root->soon, on_soon, 0, 0);
}

static int do_spawn(void *arg, uint32_t token, const struct spawn_request *request)
{
	static const char why[] = "a step of srun --async cannot spawn, because no srun stays with it: leave out --async";
	struct service *s = arg;

	log_error(s->node->log, "a spawn is rejected: %s", why);
	step_services_spawned(s->root->services, token, PMI_RC_FAIL, why);
	return 0;
}

static void do_abort(void *arg, uint32_t rank, int code, const char *text)
{
	const struct service *s = arg;
	char why[NODE_WHY_MAX];

	if (rank == CONTROL_NO_RANK || rank == CONTROL_KEY_WAITS)
		snprintf(why, sizeof(why), "%s", text);
	else
		snprintf(why, sizeof(why), "rank %u called abort%s%.300s (exit code %d)",
			 rank, text[0] ? ": " : "", text, code);
	node_kill_step(s->node, why);
}

static void do_report(void *arg, const char *text)
{
	const struct service *s = arg;

	log_error(s->node->log, "%s", text);
}

static void do_stall(void *arg, uint32_t age_s, bool give_up, const char *text)
{
	struct service *s = arg;
	char own[PMI_WAIT_TEXT_MAX] = "";

	if (!text[0])
		pmi_server_tell_own_wait(s->server, age_s, own);
	if (text[0] || own[0])
		log_error(s->node->log, "%s", text[0] ? text : own);
	else
		log_error(s->node->log, "ranks of the step have waited for %u s in a collective%s",
			  age_s, give_up ? " (Pmi2xCollectiveTimeout)" : "");
	if (give_up)
		pmi_server_expire_all(s->server, "Pmi2xCollectiveTimeout has passed");
}

/* ---- in ---- */

static void expire(struct service *s);

static void on_names_due(uv_timer_t *timer)
{
	expire(timer->data);
}

static void expire(struct service *s)
{
	const uint64_t now = node_now(s->node);
	const uint64_t due = step_services_expire(s->root->services, now);

	if (due == UINT64_MAX)
		uv_timer_stop(&s->root->names_due);
	else
		uv_timer_start(&s->root->names_due, on_names_due, due - now, 0);
}

/* The names are random numbers to everybody else: ranks choose those that are published. */
static int make_services(struct service *s)
{
	static const struct step_services_ops ops = {
		.reply = do_reply,
		.spawn = do_spawn,
		.abort = do_abort,
		.report = do_report,
		.stall = do_stall,
	};

	if (s->root->services)
		return 0;
	return step_services_create(&s->root->services, &ops, s, s->step->hash_seed,
				    s->node->log);
}

int root_services_send(struct service *s, struct payload *frame)
{
	int rc = make_services(s);

	rc = rc ? rc : step_services_receive(s->root->services, s, frame->data, frame->len);
	if (!rc)
		expire(s);
	return rc;
}

bool root_services_is_flushed(const struct service *s)
{
	return !s->root->replies.count;
}

/* ---- life ---- */

int root_services_open(struct service *s)
{
	int rc;

	s->root = calloc(1, sizeof(*s->root));
	if (!s->root)
		return -ENOMEM;
	payload_vec_init(&s->root->replies);
	rc = uv_timer_init(loop_uv(s->node->loop), &s->root->soon);
	rc = rc ? rc : uv_timer_init(loop_uv(s->node->loop), &s->root->names_due);
	s->root->soon.data = s->root->names_due.data = s;
	return rc;
}

void root_services_close(struct service *s)
{
	if (!s->root)
		return;
	node_close_handle(&s->root->soon);
	node_close_handle(&s->root->names_due);
}

void root_services_free(struct service *s)
{
	if (!s->root)
		return;
	payload_vec_clear(&s->root->replies);
	step_services_destroy(s->root->services);
	free(s->root);
}
