/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of the Slurm job: a head with a journal stops before it. SLURM_JOB_END_TIME has that
 * end since Slurm 23.02; elsewhere squeue has it. Limits get extended: squeue is asked again
 * before the head stops.
 *
 *   NOTHING -- squeue is to be asked --> ASKS -- at its time --> ASKING -- it has answered --+
 *      ^                                  ^                                                  |
 *      |                                  +--- there is much time left, or no answer at all -+
 *      +--- there is no limit ---------------------------------------------------------------+
 *                                   STOPS <--- the end is near ------------------------------+
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dvm/common/environ.h"
#include "dvm/head/head_main.h"
#include "libutil/decimal.h"

#define MARGIN_S 5  /* for the last messages, before the job ends */
#define ASK_S 15    /* for squeue to answer */
#define RETRY_S 60  /* until squeue is asked again that has not answered */

/* ---- times ---- */

static uint64_t now_s(void)
{
	return (uint64_t)time(NULL);
}

/* Tasks have the grace time to finish, and after SIGTERM the same again. */
static uint64_t before_s(const struct head_main *h)
{
	return 2 * h->options.grace_ms / 1000 + MARGIN_S;
}

static uint64_t left_s(const struct head_main *h)
{
	uint64_t now = now_s();

	return h->job.end_s > now ? h->job.end_s - now : 0;
}

/* [DAYS-][[HOURS:]MINUTES:]SECONDS. False: it is something else, as UNLIMITED. */
static bool read_left(char *text, uint64_t *seconds)
{
	char *dash = strchr(text, '-'), *at = dash ? dash + 1 : text, *save, *word;
	uint64_t days = 0, all = 0, part;

	if (dash)
		*dash = '\0';
	if (dash && !decimal_u64(text, 0, UINT32_MAX, &days))
		return false;
	word = strtok_r(at, ":", &save);
	if (!word)
		return false;
	for (; word; word = strtok_r(NULL, ":", &save)) {
		if (!decimal_u64(word, 0, UINT32_MAX, &part))
			return false;
		all = all * 60 + part;
	}
	*seconds = days * 24 * 3600 + all;
	return true;
}

/* ---- what comes next ---- */

static void on_timer(uv_timer_t *timer);

static void next(struct head_main *h, enum job_state state, uint64_t seconds)
{
	h->job.state = state;
	uv_timer_start(&h->job.timer, on_timer, seconds * 1000, 0);
}

/* Squeue has answered just now. */
static void plan(struct head_main *h, uint64_t left)
{
	uint64_t before = before_s(h);

	if (left > before + ASK_S)
		next(h, JOB_ASKS, left - before - ASK_S);
	else
		next(h, JOB_STOPS, left > before ? left - before : 0);
}

static void without_answer(struct head_main *h)
{
	if (h->job.end_s)
		next(h, JOB_STOPS, left_s(h) > before_s(h) ? left_s(h) - before_s(h) : 0);
	else
		next(h, JOB_ASKS, RETRY_S);
}

/* A job that is shorter than the time for its end never stops early. */
static void answered(struct head_main *h)
{
	struct head_job *j = &h->job;
	bool first = !j->end_s;
	uint64_t left;

	j->text[strcspn(j->text, "\n")] = '\0';
	if (j->failed || !*j->text) {
		without_answer(h);
	} else if (!read_left(j->text, &left)) {
		j->state = JOB_NOTHING;
	} else {
		j->end_s = now_s() + left;
		if (!first || left > before_s(h))
			plan(h, left);
	}
}

/* ---- squeue ---- */

/* Both its process and its output have gone. */
static void on_closed(uv_handle_t *handle)
{
	struct head_main *h = handle->data;

	if (--h->job.open || h->leaving || h->stops)
		return;
	uv_timer_stop(&h->job.timer);
	answered(h);
}

static void on_exit_of_squeue(uv_process_t *process, int64_t code, int number)
{
	struct head_main *h = process->data;

	h->job.failed = code || number;
	uv_close((uv_handle_t *)process, on_closed);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
	struct head_job *j = &((struct head_main *)handle->data)->job;

	*buf = uv_buf_init(j->text + j->len, (unsigned)(sizeof(j->text) - 1 - j->len));
}

static void on_text(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct head_job *j = &((struct head_main *)stream->data)->job;

	if (n < 0)
		uv_close((uv_handle_t *)stream, on_closed);
	else
		j->len += (size_t)n;
}

static int spawn_squeue(struct head_main *h)
{
	struct head_job *j = &h->job;
	char *args[] = { "squeue", "-h", "-j", j->id, "-o", "%L", NULL };
	uv_stdio_container_t stdio[] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		  .data.stream = (uv_stream_t *)&j->output },
		{ .flags = UV_IGNORE },
	};
	uv_process_options_t options = {
		.file = args[0], .args = args, .env = environ_filter(environ_is_not_of_squeue), .stdio = stdio,
		.stdio_count = 3, .exit_cb = on_exit_of_squeue,
	};
	int rc = options.env ? uv_spawn(loop_uv(h->loop), &j->process, &options) : -ENOMEM;

	free(options.env);
	return rc;
}

static void ask(struct head_main *h)
{
	struct head_job *j = &h->job;
	int rc;

	memset(j->text, 0, sizeof(j->text));
	j->len = 0;
	j->open = 2;
	j->failed = false;
	j->process.data = j->output.data = h;
	uv_pipe_init(loop_uv(h->loop), &j->output, 0);
	rc = spawn_squeue(h);
	rc = rc ? rc : uv_read_start((uv_stream_t *)&j->output, on_room, on_text);
	next(h, JOB_ASKING, ASK_S);
	if (!rc)
		return;
	j->failed = true;
	uv_close((uv_handle_t *)&j->process, on_closed);
	uv_close((uv_handle_t *)&j->output, on_closed);
}

static void on_timer(uv_timer_t *timer)
{
	struct head_main *h = timer->data;

	if (h->job.state == JOB_STOPS)
		h->job.stop(h);
	else if (h->job.state == JOB_ASKS)
		ask(h);
	else
		uv_process_kill(&h->job.process, SIGKILL); /* it takes too long */
}

/* ---- life ---- */

void job_open(struct head_main *h, void (*stop)(struct head_main *h))
{
	h->job.stop = stop;
	h->job.timer.data = h;
	uv_timer_init(loop_uv(h->loop), &h->job.timer);
}

/* The name of the job for squeue, which shows all of an array by the number of one. */
static void note_id(struct head_job *j)
{
	const char *id = getenv("SLURM_JOB_ID");
	const char *array = getenv("SLURM_ARRAY_JOB_ID");
	const char *element = getenv("SLURM_ARRAY_TASK_ID");

	if (array && element)
		snprintf(j->id, sizeof(j->id), "%s_%s", array, element);
	else
		snprintf(j->id, sizeof(j->id), "%s", id ? id : "");
}

void job_watch(struct head_main *h)
{
	const char *text = getenv("SLURM_JOB_END_TIME");
	struct head_job *j = &h->job;
	uint64_t before = before_s(h), left;

	if (!h->options.journal.dir)
		return;
	note_id(j);
	if (text && decimal_u64(text, 1, INT64_MAX, &j->end_s)) {
		left = left_s(h);
		if (left > before)
			next(h, *j->id ? JOB_ASKS : JOB_STOPS,
			     left - before - (left - before > ASK_S && *j->id ? ASK_S : 0));
	} else if (*j->id) {
		ask(h);
	}
}

void job_close(struct head_main *h)
{
	uv_close((uv_handle_t *)&h->job.timer, NULL);
	if (h->job.open && !uv_is_closing((uv_handle_t *)&h->job.process))
		uv_process_kill(&h->job.process, SIGKILL);
}
