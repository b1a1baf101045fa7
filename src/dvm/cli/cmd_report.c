/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm report: what journals tell of the tasks, whether their heads live or not: as a
 * table or JSON of all of them, as CSV, a line a task, or as tables, a line a run.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/options.h"
#include "dvm/cli/report.h"
#include "dvm/cli/task_text.h"

#define SLOWEST 5    /* tasks */
#define FAILED 10    /* tasks */
#define COMMAND_SHOWN 60 /* characters */
#define FAILURES 10  /* rows: by exit status, and by node; --json has all */

/* ---- tasks ---- */

/* The task that follows in all journals; NULL: the first one, or no more. */
static const struct history_task *next_task(const struct report *r, const struct history_task *t)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct history *h = &r->histories[i];

		if (t && (t < h->tasks || t >= h->tasks + h->ntasks))
			continue;
		t = t ? t + 1 : h->tasks;
		if (t && t < h->tasks + h->ntasks)
			return t;
		t = NULL; /* the first one of the next journal */
	}
	return NULL;
}

/* ---- bytes as JSON ---- */

/* A string; "?" for bytes that are no text. */
static json_t *text_of(const struct dvm_bytes *b)
{
	json_t *text = json_stringn(b->len ? b->data : "", b->len);

	return text ? text : json_string("?");
}

json_t *report_submitted(const struct history_task *t)
{
	json_t *task = json_loadb(t->submit.json.data, t->submit.json.len, 0, NULL);

	return task ? task : json_object();
}

/* ---- failures ---- */

/* Adds one to what the object has under the key. */
static void add_one(json_t *counts, const char *key)
{
	json_object_set_new(counts, key, json_integer(get_number(counts, key) + 1));
}

static void add_failure(json_t *codes, json_t *nodes, const struct history_task *t)
{
	json_t *node = text_of(&t->end.node);
	char code[16];

	snprintf(code, sizeof(code), "%d", history_code(t));
	add_one(codes, code);
	add_one(nodes, json_string_length(node) ? json_string_value(node) : "none");
	json_decref(node);
}

/* {"codes": {code: count}, "nodes": {node: count}} */
static json_t *failures_of(const struct report *r)
{
	json_t *codes = json_object(), *nodes = json_object();
	const struct history_task *t = NULL;

	while ((t = next_task(r, t)))
		if (t->state == HISTORY_FAILED)
			add_failure(codes, nodes, t);
	return json_pack("{s:o,s:o}", "codes", codes, "nodes", nodes);
}

/* ---- the slowest ---- */

int report_signal(const struct history_task *t)
{
	return t->end.status & 0x7f;
}

static json_t *task_json(const struct history_task *t)
{
	json_t *task = report_submitted(t), *name = json_object_get(task, "name"), *o;
	char *command = command_of(task);

	o = json_pack("{s:I,s:f,s:s,s:i,s:o,s:s,s:s}",
		      "id", (json_int_t)t->submit.task, "seconds", history_seconds(t),
		      "state", history_state_name(t->state), "code", history_code(t),
		      "node", text_of(&t->end.node),
		      "name", json_is_string(name) ? json_string_value(name) : "",
		      "command", command ? command : "");
	if (line_of_task(task))
		json_object_set_new(o, "line", json_integer((json_int_t)line_of_task(task)));
	if (report_signal(t))
		json_object_set_new(o, "signal", json_integer(report_signal(t)));
	if (t->end.why.len)
		json_object_set_new(o, "why", text_of(&t->end.why));
	free(command);
	json_decref(task);
	return o;
}

/* The first of a list of tasks that ran for longest; the last is not used. */
static void insert(const struct history_task *list[SLOWEST + 1],
		   const struct history_task *t)
{
	size_t at = SLOWEST;

	while (at && (!list[at - 1] ||
		      history_seconds(t) > history_seconds(list[at - 1]))) {
		list[at] = list[at - 1];
		at--;
	}
	list[at] = t;
}

static json_t *slowest_of(const struct report *r)
{
	const struct history_task *list[SLOWEST + 1] = { NULL }, *t = NULL;
	json_t *slowest = json_array();

	while ((t = next_task(r, t)))
		if (history_seconds(t) > 0)
			insert(list, t);
	for (size_t i = 0; i < SLOWEST && list[i]; i++)
		json_array_append_new(slowest, task_json(list[i]));
	return slowest;
}

/* The first tasks that have failed. */
static json_t *failed_of(const struct report *r)
{
	const struct history_task *t = NULL;
	json_t *failed = json_array();

	while (json_array_size(failed) < FAILED && (t = next_task(r, t)))
		if (t->state == HISTORY_FAILED)
			json_array_append_new(failed, task_json(t));
	return failed;
}

/* ---- all of it ---- */

static json_t *times_json(const struct history_times *t)
{
	return t->count ? json_pack("{s:f,s:f,s:f,s:f}", "mean", t->mean, "median", t->median,
				    "q3", t->q3, "p99", t->p99) :
			  json_null();
}

static json_t *tasks_json(const struct report *r)
{
	json_t *tasks = json_object();
	uint64_t earlier = 0;

	for (int i = 0; i < HISTORY_STATES; i++)
		json_object_set_new(tasks, history_state_name(i),
			json_integer((json_int_t)r->figures.states[i]));
	for (size_t i = 0; i < r->n; i++)
		earlier += r->histories[i].counts.done;
	json_object_set_new(tasks, "earlier", json_integer((json_int_t)earlier));
	return tasks;
}

static json_t *most_json(const struct history_most *m)
{
	return json_pack("{s:I,s:I,s:I}", "setup", (json_int_t)m->setup, "running",
			 (json_int_t)m->running, "ending", (json_int_t)m->ending);
}

/* Seconds, or null for times that no journal has. */
static json_t *mean_json(size_t count, double seconds)
{
	return count ? json_real(seconds) : json_null();
}

static json_t *part_json(double part, double of)
{
	return of > 0 ? json_real(part / of) : json_null();
}

static size_t count_ended(const struct history_figures *f)
{
	return f->states[HISTORY_DONE] + f->states[HISTORY_FAILED] +
	       f->states[HISTORY_CANCELLED];
}

static json_t *summary_of(const struct report *r)
{
	const struct history_figures *f = &r->figures;
	const struct history_stages *stages = &f->stages;
	struct journal_nodes n = report_most_nodes(r);
	double seconds = f->last_ns > f->first_ns ?
			 (double)(f->last_ns - f->first_ns) / 1e9 : 0;
	bool simulated = false;
	size_t heads = 0;

	for (size_t i = 0; i < r->n; i++) {
		heads += r->histories[i].heads;
		simulated |= r->histories[i].simulated;
	}
	return json_pack("{s:b,s:I,s:I,s:i,s:I,s:I,s:o,s:f,s:f,s:f,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}",
			 "simulated", simulated, "dvms", (json_int_t)r->n, "heads", (json_int_t)heads,
			 "nodes", (int)n.nodes, "slots", (json_int_t)n.slots,
			 "gpus", (json_int_t)n.gpus,
			 "tasks", tasks_json(r), "first", f->first_ns / 1e9,
			 "last", f->last_ns / 1e9, "rate",
			 seconds > 0 ? (double)count_ended(f) / seconds : 0,
			 "startup", mean_json(stages->starts, stages->start),
			 "end", mean_json(stages->stops, stages->stop),
			 "setup", times_json(&f->setup), "start", times_json(&f->start),
			 "used", part_json(f->used, f->there),
			 "used_gpus", part_json(f->gpus_used, f->gpus_there),
			 "most", most_json(&f->most), "failures", failures_of(r),
			 "failed", failed_of(r), "slowest", slowest_of(r));
}

/* ---- as a table ---- */

static void print_counts(const char *what, json_t *counts)
{
	const char *key;
	json_t *count;
	int left = FAILURES;

	if (!json_object_size(counts))
		return;
	printf("\n%-20s %8s\n", what, "FAILED");
	json_object_foreach(counts, key, count)
		if (left-- > 0)
			printf("%-20s %8lld\n", key, json_integer_value(count));
	if (left < 0)
		printf("and %d more: --json\n", -left);
}

static void print_row(json_t *t)
{
	printf("%10lld  %10.3f  %-9s  %4lld  %-20s %s%s", get_number(t, "id"),
	       json_number_value(json_object_get(t, "seconds")), get_text(t, "state"),
	       get_number(t, "code"), get_text(t, "node"), get_text(t, "name"),
	       *get_text(t, "name") ? ": " : "");
	if (get_number(t, "line"))
		printf("line %lld: ", get_number(t, "line"));
	print_shortened(stdout, get_text(t, "command"), COMMAND_SHOWN);
	if (get_number(t, "signal")) {
		fputs(": ", stdout);
		print_how(stdout, t);
	}
	fputs(*get_text(t, "why") ? ": " : "", stdout);
	print_text(stdout, get_text(t, "why"), strlen(get_text(t, "why")));
	putchar('\n');
}

static void print_rows(const char *what, json_t *tasks)
{
	json_t *t;
	size_t i;

	if (!json_array_size(tasks))
		return;
	printf("\n%10s  %10s  %-9s  %4s  %-20s %s\n", what, "SECONDS", "STATE",
	       "CODE", "NODE", "COMMAND");
	json_array_foreach(tasks, i, t)
		print_row(t);
}

static void print_time(double seconds)
{
	time_t whole = (time_t)seconds;
	struct tm local;
	char text[64];

	if (localtime_r(&whole, &local) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local))
		printf("%s", text);
}

static double value_of(json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static void print_times(const char *what, json_t *times, const char *of)
{
	if (json_is_object(times))
		printf("%-10s %.2f ms (median), %.2f ms (mean), %.2f ms (75 %%), %.2f ms (99 %%) %s\n",
		       what, value_of(times, "median") * 1e3, value_of(times, "mean") * 1e3,
		       value_of(times, "q3") * 1e3, value_of(times, "p99") * 1e3, of);
}

static void print_heads(json_t *s)
{
	bool one = get_number(s, "dvms") == 1;

	printf("%-10s %lld%s", "heads", get_number(s, "heads"),
	       json_is_true(json_object_get(s, "simulated")) ? ", simulated," : "");
	if (!one)
		printf(" of %lld DVMs", get_number(s, "dvms"));
	printf(", with up to %lld nodes, %lld slots", get_number(s, "nodes"),
	       get_number(s, "slots"));
	if (get_number(s, "gpus"))
		printf(", %lld GPUs", get_number(s, "gpus"));
	putchar('\n');
	if (json_is_number(json_object_get(s, "startup")))
		printf("%-10s %.3f s until all nodes were there%s\n", "startup",
		       value_of(s, "startup"), one ? "" : ", in the mean");
	if (json_is_number(json_object_get(s, "end")))
		printf("%-10s %.3f s%s\n", "end", value_of(s, "end"), one ? "" : ", in the mean");
}

static void print_use(json_t *s)
{
	json_t *used = json_object_get(s, "used"), *gpus = json_object_get(s, "used_gpus");
	json_t *most = json_object_get(s, "most");

	if (json_is_number(used))
		printf("%-10s %.1f %% of the slots", "used", json_number_value(used) * 100);
	if (json_is_number(gpus))
		printf(", %.1f %% of the GPUs", json_number_value(gpus) * 100);
	if (json_is_number(used))
		puts(", on average");
	if (get_number(most, "running"))
		printf("%-10s at most %lld tasks ran, %lld were in setup, and %lld were ending\n",
		       "at once", get_number(most, "running"), get_number(most, "setup"),
		       get_number(most, "ending"));
}

static void print_tasks(json_t *tasks)
{
	long long earlier = get_number(tasks, "earlier");

	printf("%-10s %lld done, %lld failed, %lld cancelled, %lld running, %lld queued",
	       "tasks", get_number(tasks, "done"), get_number(tasks, "failed"),
	       get_number(tasks, "cancelled"), get_number(tasks, "running"),
	       get_number(tasks, "queued"));
	if (earlier)
		printf("; %lld ended earlier, and the journal has only their number",
		       earlier);
	putchar('\n');
}

static void print_span(json_t *s)
{
	double first = json_number_value(json_object_get(s, "first"));
	double last = json_number_value(json_object_get(s, "last"));

	if (last <= first)
		return;
	printf("%-10s ", "time");
	print_time(first);
	printf(" to ");
	print_time(last);
	printf(": %.2f s, %.1f tasks/s\n", last - first,
	       json_number_value(json_object_get(s, "rate")));
}

static void print_table(json_t *s)
{
	json_t *failures = json_object_get(s, "failures");

	print_heads(s);
	print_tasks(json_object_get(s, "tasks"));
	print_span(s);
	print_times("setup", json_object_get(s, "setup"), "from free slots to started");
	print_times("start", json_object_get(s, "start"), "from placed to started");
	print_use(s);
	print_counts("EXIT STATUS", json_object_get(failures, "codes"));
	print_counts("NODE", json_object_get(failures, "nodes"));
	print_rows("FAILED", json_object_get(s, "failed"));
	print_rows("SLOWEST", json_object_get(s, "slowest"));
}

/* ---- the command ---- */

static void print_summary(const struct report *r, bool as_json)
{
	json_t *summary = summary_of(r);

	if (as_json)
		print_json(summary);
	else
		print_table(summary);
	json_decref(summary);
}

static int print_tables(char **dirs, size_t n)
{
	struct report *runs = calloc(n, sizeof(*runs));
	int status = 0;

	if (!runs)
		die("out of memory");
	for (size_t i = 0; i < n; i++)
		report_read(&runs[i], dirs[i]);
	report_tables(runs, n);
	for (size_t i = 0; i < n; i++) {
		status |= report_tell_damage(&runs[i]);
		report_free(&runs[i]);
	}
	free(runs);
	return status;
}

static int print_one(const char *dir, int form)
{
	struct report r;
	int status;

	report_read(&r, dir);
	if (form == 'c')
		report_csv(&r);
	else
		print_summary(&r, form == 'j');
	status = report_tell_damage(&r);
	report_free(&r);
	return status;
}

int cmd_report(int argc, char **argv)
{
	static const struct option options[] = {
		{ "csv", no_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "tables", no_argument, NULL, 't' },
		{ 0 },
	};
	int option, form = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == '?')
			die_option(argv, option, options);
		if (form)
			die_usage("report: give one of --csv, --json and --tables");
		form = option;
	}
	if (form == 't' && optind < argc)
		return print_tables(argv + optind, (size_t)(argc - optind));
	if (optind + 1 != argc)
		die_usage("report: name the directory of one journal");
	return print_one(argv[optind], form);
}
