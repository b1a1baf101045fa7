/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting results, showing progress, and the summary. */
#include "dvm/cli/results.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "dvm/core/head.h"

#define FAILURES_SHOWN 10
#define SHOW_S 0.5 /* between two lines of progress */

static double steady(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void results_begin(struct results *r)
{
	r->began = r->shown = steady();
	r->tty = isatty(STDERR_FILENO);
}

static double time_of(json_t *task, size_t i)
{
	return json_number_value(json_array_get(json_object_get(task, "t"), i));
}

static void note_times(struct results *r, json_t *task)
{
	double *more;

	if (!r->first || time_of(task, 0) < r->first)
		r->first = time_of(task, 0);
	if (time_of(task, 3) > r->last)
		r->last = time_of(task, 3);
	if (!time_of(task, 2) || !time_of(task, 1))
		return;
	if (r->nsetups == r->setups_cap) {
		r->setups_cap = r->setups_cap ? 2 * r->setups_cap : 1024;
		more = realloc(r->setups, r->setups_cap * sizeof(*more));
		if (!more)
			die("out of memory");
		r->setups = more;
	}
	r->setups[r->nsetups++] = time_of(task, 2) - time_of(task, 1);
}

/* Its last line of error output says most. */
static void print_failure(const struct results *r, json_t *task)
{
	const char *why = get_text(task, "why"), *err = get_text(task, "err");
	size_t len = strlen(err);
	const char *line;

	while (len && err[len - 1] == '\n')
		len--;
	for (line = err + len; line > err && line[-1] != '\n';)
		line--;
	fprintf(stderr, "%stask %lld failed: exit status %lld%s%s%s%.*s\n",
		r->tty ? "\r" : "", get_number(task, "id"),
		get_number(task, "code"), *why ? ": " : "", why,
		len ? ": " : "", (int)(len - (size_t)(line - err)), line);
}

static void note_task(struct results *r, json_t *task)
{
	bool failed = get_number(task, "code") != 0 ||
		      !strcmp(get_text(task, "state"), "cancelled");

	r->ended++;
	note_times(r, task);
	if (r->report) {
		json_dumpf(task, r->report, JSON_COMPACT);
		fputc('\n', r->report);
	}
	if (!failed)
		return;
	if (!r->only || r->only == get_number(task, "id"))
		r->code = (int)get_number(task, "code");
	if (r->quiet && *get_text(task, "why"))
		fprintf(stderr, "pmi2x-dvm: %s\n", get_text(task, "why"));
	if (++r->failed <= FAILURES_SHOWN && !r->quiet)
		print_failure(r, task);
	if (r->failed == FAILURES_SHOWN + 1 && !r->quiet)
		fprintf(stderr, "more tasks failed: see pmi2x-dvm ps --ended, or use --report FILE\n");
}

static void show_progress(struct results *r)
{
	double now = steady();

	if (!r->tty || r->quiet || now - r->shown < SHOW_S)
		return;
	r->shown = now;
	fprintf(stderr, "\r%zu of %zu tasks have ended, %zu failed ", r->ended,
		r->submitted, r->failed);
}

/* One of several DVMs has gone; the others' results still come. */
static void note_lost(struct results *r, json_t *event)
{
	long long tasks = get_number(event, "tasks");

	fprintf(stderr, "%spmi2x-dvm: lost the DVM %s, and with it %lld tasks that had not ended\n",
		r->tty ? "\r" : "", get_text(event, "dvm"), tasks);
	r->ended += (size_t)tasks;
	r->failed += (size_t)tasks;
	r->code = 1;
}

void results_event(struct results *r, json_t *event)
{
	json_t *task;
	size_t i;

	if (!strcmp(event_name(event), "spawned"))
		r->submitted++;
	if (!strcmp(event_name(event), "lost"))
		note_lost(r, event);
	if (strcmp(event_name(event), "ended"))
		return;
	json_array_foreach(json_object_get(event, "tasks"), i, task)
		note_task(r, task);
	show_progress(r);
}

static void on_event(void *arg, json_t *event)
{
	results_event(arg, event);
}

void results_collect(struct results *r, struct conn *c)
{
	json_t *event;

	while (r->ended < r->submitted) {
		event = conn_next(c);
		if (!event) {
			conn_say_logs(c);
			die("the DVM has ended; %zu of %zu tasks had ended",
			    r->ended, r->submitted);
		}
		results_event(r, event);
		json_decref(event);
	}
}

void results_wait_for(struct results *r, struct conn *c, json_t *request)
{
	json_t *event;

	conn_on_event(c, on_event, r);
	event = conn_ask(c, request);
	r->submitted = (size_t)get_number(event, "tasks");
	r->before = (size_t)get_number(event, "before");
	r->failed_before = (size_t)get_number(event, "before_failed");
	r->unkept = (size_t)get_number(event, "unkept");
	json_decref(event);
	results_collect(r, c);
}

/* ---- summary ---- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_summary(struct results *r)
{
	double all = r->last - r->first;
	size_t n = r->nsetups;

	fprintf(stderr, "%s%zu tasks: %zu done, %zu failed", r->tty ? "\r" : "",
		r->ended, r->ended - r->failed, r->failed);
	if (r->refused)
		fprintf(stderr, ", %zu refused", r->refused);
	if (r->before)
		fprintf(stderr, "; %zu had ended before, %zu of them failed",
			r->before, r->failed_before);
	if (all > 0)
		fprintf(stderr, "; %.2f s, %.0f tasks/s", all,
			(double)r->ended / all);
	if (n) {
		qsort(r->setups, n, sizeof(*r->setups), ascending);
		fprintf(stderr, "; from placed to started %.1f ms (median), %.1f ms (99 %%)",
			r->setups[n / 2] * 1e3, r->setups[n * 99 / 100] * 1e3);
	}
	fputc('\n', stderr);
}

static void confirm(struct conn *c)
{
	json_decref(conn_ask(c, json_pack("{s:s}", "op", "waited")));
}

int results_end(struct results *r, struct conn *c)
{
	if (!r->quiet)
		print_summary(r);
	if (r->unkept)
		fprintf(stderr, "pmi2x-dvm: %zu tasks have ended, and their results are not kept any more: the last %d are\n",
			r->unkept, HEAD_KEPT_MAX);
	free(r->setups);
	if (r->report && (ferror(r->report) | fclose(r->report))) {
		fprintf(stderr, "pmi2x-dvm: the report cannot be written\n");
		return 1;
	}
	if (c)
		confirm(c);
	return r->failed || r->refused || r->failed_before || r->unkept ? 1 : 0;
}
