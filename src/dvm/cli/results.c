/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting results, showing progress, and the summary. */
#include "dvm/cli/results.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/interrupt.h"
#include "dvm/cli/task_text.h"
#include "dvm/core/head.h"
#include "libio/clock.h"
#include "libutil/plural.h"

#define FAILURES_SHOWN 10
#define COMMAND_SHOWN 100 /* characters */

void results_begin(struct results *r)
{
	progress_begin(&r->progress, isatty(STDERR_FILENO), clock_s(CLOCK_MONOTONIC));
}

bool results_too_many_failed(const struct results *r)
{
	return max_fails_reached(&r->max_fails, r->ended_failed, r->submitted, r->whole);
}

static double time_of(json_t *task, size_t i)
{
	return json_number_value(json_array_get(json_object_get(task, "t"), i));
}

static void note_times(struct results *r, json_t *task)
{
	double *more, placed = time_of(task, 1);

	if (placed && (!r->first || placed < r->first))
		r->first = placed;
	if (time_of(task, 3) > r->last)
		r->last = time_of(task, 3);
	if (!time_of(task, 2) || !placed)
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

/* ---- failures ---- */

static bool is_cancelled(json_t *task)
{
	return !strcmp(get_text(task, "state"), "cancelled");
}

static char *command_for(json_t *task, const struct sent_task *of)
{
	char *command = of && of->command ? strdup(of->command) : command_of(task);

	if (!command && !(command = strdup("")))
		die("out of memory");
	return command;
}

static void print_failure(const struct results *r, json_t *task, const struct sent_task *of)
{
	size_t line = of ? of->line : line_of_task(task);
	char *command = command_for(task, of);

	fprintf(stderr, "task %lld", get_number(task, "id"));
	if (line)
		fprintf(stderr, ", line %zu,", line);
	fputs(" failed: ", stderr);
	print_how(stderr, task);
	fputs(*command ? ": " : "", stderr);
	print_shortened(stderr, command, COMMAND_SHOWN);
	print_reason(stderr, task);
	fputc('\n', stderr);
	free(command);
}

/* Without a line for each failure: what the task's own output does not say. */
static void print_why(const struct results *r, json_t *task)
{
	json_t *why = json_object_get(task, "why");

	if (!why && (!r->only || !get_number(task, "signal")))
		return;
	fputs("pmi2x-dvm: ", stderr);
	if (why)
		print_bytes(stderr, why);
	else
		print_how(stderr, task);
	fputc('\n', stderr);
}

static void note_failure(struct results *r, json_t *task, const struct sent_task *of)
{
	if ((r->stopping || r->gave_up) && is_cancelled(task)) {
		r->dropped += r->gave_up;
		return;
	}
	if (!r->only || r->only == get_number(task, "id"))
		r->code = (int)get_number(task, "code");
	if (r->quiet)
		print_why(r, task);
	if (++r->failed <= FAILURES_SHOWN && !r->quiet)
		print_failure(r, task, of);
	if (r->failed == FAILURES_SHOWN + 1 && !r->quiet)
		fprintf(stderr, "more tasks have failed: %s has all of them\n",
			r->file ? r->file->path : "pmi2x-dvm ps --ended");
}

/* ---- results ---- */

/* A result_text_fn. */
static void write_out(void *arg, json_t *task, const char *stream, FILE *to)
{
	size_t len;
	char *data = get_bytes(json_object_get(task, stream), &len);

	if (len)
		fwrite(data, 1, len, to);
	fflush(to);
	free(data);
}

static void print_stream(struct results *r, json_t *task, const char *stream, FILE *to)
{
	complete_output_print(task, stream, NULL, &r->printed, to, write_out, NULL);
}

/* Add the line and command as this client knows them: the head may have cut them. */
static void set_sent(json_t *task, const struct sent_task *of)
{
	size_t line = of ? of->line : line_of_task(task);
	char *command = command_for(task, of);

	json_object_del(task, "argv");
	json_object_del(task, "argv_cut");
	json_object_del(task, "number");
	if (line)
		json_object_set_new(task, "line", json_integer((json_int_t)line));
	if (*command)
		json_object_set_new(task, "command", json_string(command));
	free(command);
}

static void write_result(struct results *r, json_t *task, const struct sent_task *of)
{
	if (r->report) {
		set_sent(task, of);
		json_dumpf(task, r->report, JSON_COMPACT);
		fputc('\n', r->report);
	}
	if (r->file && of && !(r->gave_up && is_cancelled(task)))
		results_file_add(r->file, of, task);
	if (r->print) {
		print_stream(r, task, "out", stdout);
		print_stream(r, task, "err", stderr);
	}
}

static void keep_early(struct results *r, json_t *task)
{
	if (!r->early)
		r->early = json_array();
	json_array_append(r->early, task);
}

static void note_files(struct results *r, json_t *task)
{
	r->longer += json_array_size(json_object_get(task, "files")) > 0;
	if (!r->print)
		complete_output_note(task, &r->printed);
}

void results_task(struct results *r, json_t *task)
{
	json_int_t id = get_number(task, "id");
	const struct sent_task *of = r->find ? r->find(r->arg, id) : NULL;
	bool failed = get_number(task, "code") != 0 || is_cancelled(task);

	if (r->find && !of) {
		keep_early(r, task);
		return;
	}
	r->ended++;
	r->done += !failed;
	r->ended_failed += failed && !is_cancelled(task);
	note_times(r, task);
	note_files(r, task);
	write_result(r, task, of);
	if (failed)
		note_failure(r, task, of);
	if (r->forget)
		r->forget(r->arg, id);
}

static void show_progress(struct results *r, double now)
{
	const struct progress_counts c = {
		.submitted = r->submitted, .failed = r->failed,
		.done = r->ended - r->failed - r->dropped,
		.running = r->progress.running, .seconds = now - r->progress.began,
	};

	progress_show(&r->progress, &c);
}

/* Show progress, if it is time for that; c: the head is asked how many tasks run. */
static void progress_turn(struct results *r, struct conn *c)
{
	double now = clock_s(CLOCK_MONOTONIC);
	json_t *answer;

	if (r->quiet || r->ended >= r->submitted || !progress_due(&r->progress, now))
		return;
	answer = c ? conn_try(c, json_pack("{s:s}", "op", "progress")) : NULL;
	if (answer)
		r->progress.running = (size_t)get_number(answer, "running");
	json_decref(answer);
	if (r->ended < r->submitted)
		show_progress(r, now);
}

static void note_node(const struct results *r, json_t *event)
{
	const char *state = get_text(event, "state");

	if (r->quiet)
		return;
	fprintf(stderr, "pmi2x-dvm: node %s ", get_text(event, "name"));
	if (!strcmp(state, "drained"))
		fprintf(stderr, "is drained: %s; pmi2x-dvm undrain lets it start tasks again\n",
			get_text(event, "why"));
	else if (strcmp(state, "lost"))
		fprintf(stderr, "has %s\n", state);
	else
		fprintf(stderr, "is lost: %s; %lld task%s ran there\n", get_text(event, "why"),
			get_number(event, "tasks"), plural((uint64_t)get_number(event, "tasks")));
}

/* One of several DVMs has gone; the results of the others still come. */
static void note_lost(struct results *r, json_t *event)
{
	long long tasks = get_number(event, "tasks");

	fprintf(stderr, "pmi2x-dvm: lost the DVM %s, and with it %lld task%s that had not ended\n",
		get_text(event, "dvm"), tasks, plural((uint64_t)tasks));
	r->ended += (size_t)tasks;
	r->failed += (size_t)tasks;
	r->code = 1;
}

static void note_ended(struct results *r, json_t *tasks)
{
	json_t *task;
	size_t i;

	json_array_foreach(tasks, i, task)
		results_task(r, task);
	if (r->file)
		results_file_flush(r->file);
}

void results_event(struct results *r, json_t *event)
{
	if (!strcmp(event_name(event), "tick"))
		return;
	progress_hide(&r->progress);
	if (!strcmp(event_name(event), "spawned"))
		r->submitted++;
	if (!strcmp(event_name(event), "lost"))
		note_lost(r, event);
	if (!strcmp(event_name(event), "node"))
		note_node(r, event);
	if (!strcmp(event_name(event), "ended"))
		note_ended(r, json_object_get(event, "tasks"));
	progress_turn(r, NULL);
}

static void on_event(void *arg, json_t *event)
{
	results_event(arg, event);
}

static void check_failures(struct results *r)
{
	if (r->gave_up || !results_too_many_failed(r))
		return;
	r->gave_up = true;
	progress_hide(&r->progress);
	fprintf(stderr, "pmi2x-dvm: %zu task%s failed, more than --max-fails allows: no more are started\n",
		r->ended_failed, r->ended_failed == 1 ? " has" : "s have");
	if (r->give_up)
		r->give_up(r->arg);
}

bool results_collect(struct results *r, struct conn *c, bool ends)
{
	json_t *event;

	r->whole = true;
	conn_tick(c, r->quiet ? 0 : progress_interval(&r->progress));
	check_failures(r);
	while (r->ended < r->submitted && (!interrupt_number() || r->stopping)) {
		event = conn_next(c);
		if (!event && ends)
			return false;
		if (!event) {
			conn_say_logs(c);
			die("%s; %zu of %zu task%s had ended", conn_end(c), r->ended,
			    r->submitted, plural(r->submitted));
		}
		results_event(r, event);
		json_decref(event);
		check_failures(r);
		progress_turn(r, c);
	}
	progress_hide(&r->progress);
	return r->ended >= r->submitted;
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
	(void)results_collect(r, c, false);
}

/* ---- the first ---- */

/* Keeps the first result, in r->early. */
static void on_first(void *arg, json_t *event)
{
	struct results *r = arg;

	if (!strcmp(event_name(event), "ended") && !r->early)
		keep_early(r, json_array_get(json_object_get(event, "tasks"), 0));
}

int results_wait_any(struct results *r, struct conn *c, json_t *request)
{
	json_t *event, *task;

	conn_on_event(c, on_first, r);
	event = conn_ask(c, request);
	if (!get_number(event, "tasks"))
		die("wait: no task is left to wait for");
	json_decref(event);
	while (!r->early && (event = conn_next(c))) {
		on_first(r, event);
		json_decref(event);
	}
	if (!r->early)
		die("the DVM has ended before any of the tasks");
	task = json_array_get(r->early, 0);
	printf("%lld\n", get_number(task, "id"));
	json_decref(conn_ask(c, json_pack("{s:s,s:[O]}", "op", "waited", "ids",
					  json_object_get(task, "id"))));
	results_task(r, task);
	return r->failed ? 1 : 0;
}

/* ---- summary ---- */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_summary(struct results *r)
{
	double all = r->first ? r->last - r->first : 0;
	size_t n = r->nsetups;

	fprintf(stderr, "%zu task%s: %zu done, %zu failed", r->ended, plural(r->ended),
		r->ended - r->failed - r->dropped, r->failed);
	if (r->dropped)
		fprintf(stderr, ", %zu not run", r->dropped);
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

void results_say_where(const struct results *r)
{
	complete_output_say(&r->printed);
	if (r->longer && !r->quiet)
		fprintf(stderr, "complete output of %zu task%s with more than 4 KiB: %s\n", r->longer,
			plural((long long)r->longer), r->outputs ? r->outputs : "");
	if (r->file && !r->quiet)
		fprintf(stderr, "results: %s\n", r->file->path);
}

int results_end(struct results *r, struct conn *c)
{
	if (!r->quiet)
		print_summary(r);
	if (r->unkept)
		fprintf(stderr, "pmi2x-dvm: results are not kept any more of %zu task%s: the last %d are\n",
			r->unkept, plural(r->unkept), HEAD_KEPT_MAX);
	free(r->setups);
	if (r->file && !results_file_close(r->file))
		return 1;
	if (r->report && (ferror(r->report) | fclose(r->report))) {
		fprintf(stderr, "pmi2x-dvm: the report cannot be written\n");
		return 1;
	}
	if (c)
		confirm(c);
	return r->failed || r->refused || r->failed_before || r->unkept ? 1 : 0;
}
