/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm report: what a journal tells of the tasks, whether its head lives or not: as a
 * table or JSON of all of them, or as CSV, a line a task.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/task_text.h"
#include "dvm/common/journal_file.h"
#include "dvm/core/history.h"

#define SLOWEST 5    /* tasks */
#define FAILED 10    /* tasks */
#define COMMAND_SHOWN 60 /* characters */
#define FAILURES 10  /* rows: by exit status, and by node; --json has all */
#define READINGS 10  /* while it grows */

struct report {
	const char *dir;
	struct journal_reader in;
	struct history history;
	struct history_figures figures;
};

/* ---- reading ---- */

static void check_version(const struct report *r, int rc, uint32_t version)
{
	if (rc == -EBADMSG)
		die("the journal in %s cannot be read: its first bytes are not those of a journal",
		    r->dir);
	if (rc)
		die("the journal in %s has version %u, and this pmi2x-dvm reads %u: use the release that wrote it",
		    r->dir, version, JOURNAL_VERSION);
}

/* True: the last record is whole. */
static bool read_once(struct report *r)
{
	uint32_t version;
	size_t len;
	void *data;
	int rc = journal_file_read(r->dir, &data, &len);

	if (rc == -ENOENT || rc == -ENOTDIR)
		die("there is no journal in %s: pmi2x-dvm up --journal DIR writes one",
		    r->dir);
	if (rc)
		die("the journal in %s cannot be read: %s", r->dir, strerror(-rc));
	check_version(r, journal_open(&r->in, data, len, &version), version);
	if (history_read(&r->history, &r->in))
		die("out of memory");
	return r->in.cut == r->in.len;
}

static void forget(struct report *r)
{
	history_free(&r->history);
	free((void *)(uintptr_t)r->in.data);
}

/* A head may be in the middle of a record. */
static void read_journal(struct report *r)
{
	size_t len = 0;

	for (int i = 0; !read_once(r) && i < READINGS && r->in.len != len; i++) {
		len = r->in.len;
		forget(r);
	}
	if (history_count(&r->history, &r->figures))
		die("out of memory");
}

/* The exit status. */
static int tell_damage(const struct report *r)
{
	const struct journal_reader *in = &r->in;

	if (in->damaged)
		fprintf(stderr, "pmi2x-dvm: journal: %zu bytes at offset %zu are damaged: the records in them are lost\n",
			in->damaged, in->damaged_at);
	if (in->gaps)
		fprintf(stderr, "pmi2x-dvm: journal: records are missing before offset %zu, and at %zu places in all\n",
			in->gap_at, in->gaps);
	if (in->cut < in->len)
		fprintf(stderr, "pmi2x-dvm: journal: cut off at offset %zu, after the last whole record: %zu bytes\n",
			in->cut, in->len - in->cut);
	return in->damaged || in->gaps || in->cut < in->len ? 1 : 0;
}

/* ---- bytes as JSON ---- */

/* A string; "?" for bytes that are no text. */
static json_t *text_of(const struct dvm_bytes *b)
{
	json_t *text = json_stringn(b->len ? b->data : "", b->len);

	return text ? text : json_string("?");
}

/* A new reference to what was submitted: its "argv", "name" and so on. */
static json_t *submitted(const struct history_task *t)
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

	for (size_t i = 0; i < r->history.ntasks; i++)
		if (r->history.tasks[i].state == HISTORY_FAILED)
			add_failure(codes, nodes, &r->history.tasks[i]);
	return json_pack("{s:o,s:o}", "codes", codes, "nodes", nodes);
}

/* ---- the slowest ---- */

static int signal_of(const struct history_task *t)
{
	return t->end.status & 0x7f;
}

static json_t *task_json(const struct history_task *t)
{
	json_t *task = submitted(t), *name = json_object_get(task, "name"), *o;
	char *command = command_of(task);

	o = json_pack("{s:I,s:f,s:s,s:i,s:o,s:s,s:s}",
		      "id", (json_int_t)t->submit.task, "seconds", history_seconds(t),
		      "state", history_state_name(t->state), "code", history_code(t),
		      "node", text_of(&t->end.node),
		      "name", json_is_string(name) ? json_string_value(name) : "",
		      "command", command ? command : "");
	if (line_of_task(task))
		json_object_set_new(o, "line", json_integer((json_int_t)line_of_task(task)));
	if (signal_of(t))
		json_object_set_new(o, "signal", json_integer(signal_of(t)));
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
	const struct history_task *list[SLOWEST + 1] = { NULL };
	json_t *slowest = json_array();

	for (size_t i = 0; i < r->history.ntasks; i++)
		if (history_seconds(&r->history.tasks[i]) > 0)
			insert(list, &r->history.tasks[i]);
	for (size_t i = 0; i < SLOWEST && list[i]; i++)
		json_array_append_new(slowest, task_json(list[i]));
	return slowest;
}

/* The first tasks that have failed. */
static json_t *failed_of(const struct report *r)
{
	json_t *failed = json_array();

	for (size_t i = 0; i < r->history.ntasks && json_array_size(failed) < FAILED; i++)
		if (r->history.tasks[i].state == HISTORY_FAILED)
			json_array_append_new(failed, task_json(&r->history.tasks[i]));
	return failed;
}

/* ---- all of it ---- */

static json_t *times_json(const struct history_times *t)
{
	return t->count ? json_pack("{s:f,s:f}", "median", t->median, "p99", t->p99) :
			  json_null();
}

static json_t *tasks_json(const struct report *r)
{
	json_t *tasks = json_object();

	for (int i = 0; i < HISTORY_STATES; i++)
		json_object_set_new(tasks, history_state_name(i),
			json_integer((json_int_t)r->figures.states[i]));
	json_object_set_new(tasks, "earlier",
			    json_integer((json_int_t)r->history.counts.done));
	return tasks;
}

static size_t count_ended(const struct history_figures *f)
{
	return f->states[HISTORY_DONE] + f->states[HISTORY_FAILED] +
	       f->states[HISTORY_CANCELLED];
}

static json_t *summary_of(const struct report *r)
{
	const struct history_figures *f = &r->figures;
	const struct history *h = &r->history;
	const struct journal_nodes *n = h->nnodes ? &h->nodes[h->nnodes - 1] : NULL;
	double seconds = f->last_ns > f->first_ns ?
			 (double)(f->last_ns - f->first_ns) / 1e9 : 0;

	return json_pack("{s:I,s:i,s:I,s:o,s:f,s:f,s:f,s:o,s:o,s:o,s:o,s:o,s:o}",
			 "heads", (json_int_t)h->heads, "nodes", n ? (int)n->nodes : 0,
			 "slots", (json_int_t)(n ? n->slots : 0),
			 "tasks", tasks_json(r), "first", f->first_ns / 1e9,
			 "last", f->last_ns / 1e9, "rate",
			 seconds > 0 ? (double)count_ended(f) / seconds : 0,
			 "setup", times_json(&f->setup),
			 "start", times_json(&f->start), "used",
			 f->there > 0 ? json_real(f->used / f->there) : json_null(),
			 "failures", failures_of(r), "failed", failed_of(r),
			 "slowest", slowest_of(r));
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

static void print_times(const char *what, json_t *times, const char *of)
{
	if (json_is_object(times))
		printf("%-10s %.2f ms (median), %.2f ms (99 %%) %s\n", what,
		       json_number_value(json_object_get(times, "median")) * 1e3,
		       json_number_value(json_object_get(times, "p99")) * 1e3, of);
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
	json_t *used = json_object_get(s, "used");

	printf("%-10s %lld, the last with %lld nodes, %lld slots\n", "heads",
	       get_number(s, "heads"), get_number(s, "nodes"), get_number(s, "slots"));
	print_tasks(json_object_get(s, "tasks"));
	print_span(s);
	print_times("setup", json_object_get(s, "setup"), "from free slots to started");
	print_times("start", json_object_get(s, "start"), "from placed to started");
	if (json_is_number(used))
		printf("%-10s %.1f %% of the slots, on average\n", "used",
		       json_number_value(used) * 100);
	print_counts("EXIT STATUS", json_object_get(failures, "codes"));
	print_counts("NODE", json_object_get(failures, "nodes"));
	print_rows("FAILED", json_object_get(s, "failed"));
	print_rows("SLOWEST", json_object_get(s, "slowest"));
}

/* ---- as CSV ---- */

static void put_quoted(const char *text, size_t len)
{
	putchar('"');
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			putchar('"');
		putchar(text[i]);
	}
	putchar('"');
}

/* Seconds, or nothing where it has not happened. */
static void put_time(uint64_t ns)
{
	if (ns)
		printf("%llu.%09llu", (unsigned long long)ns / 1000000000,
		       (unsigned long long)ns % 1000000000);
	putchar(',');
}

static void put_result(const struct history_task *t)
{
	const struct journal_end *e = &t->end;

	if (t->state < HISTORY_DONE) {
		printf(",,,,,");
		return;
	}
	printf("%d,%u,%.6f,%.6f,%llu,", history_code(t), e->rank,
	       (double)e->user_us / 1e6, (double)e->system_us / 1e6,
	       (unsigned long long)e->peak_kib);
}

static void print_line(const struct history_task *t)
{
	json_t *task = submitted(t), *name = json_object_get(task, "name");
	char *command = command_of(task);

	printf("%llu,%s,%u,%u,", (unsigned long long)t->submit.task,
	       history_state_name(t->state), t->start.instance, t->start.slots);
	put_time(t->submit.submitted_ns);
	put_time(t->start.placed_ns);
	put_time(t->end.started_ns);
	put_time(t->end.ended_ns);
	put_result(t);
	put_quoted(t->end.node.data, t->end.node.len);
	putchar(',');
	put_quoted(json_string_value(name), json_string_length(name));
	putchar(',');
	put_quoted(t->end.why.data, t->end.why.len);
	printf(",%zu,%d,", line_of_task(task), t->state < HISTORY_DONE ? 0 : signal_of(t));
	put_quoted(command ? command : "", command ? strlen(command) : 0);
	putchar('\n');
	free(command);
	json_decref(task);
}

static void print_csv(const struct history *h)
{
	puts("id,state,instance,slots,submitted,placed,started,ended,code,rank,user,system,peak_kib,node,name,why,line,signal,command");
	for (size_t i = 0; i < h->ntasks; i++)
		print_line(&h->tasks[i]);
}

static void print_summary(const struct report *r, bool as_json)
{
	json_t *summary = summary_of(r);

	if (as_json)
		print_json(summary);
	else
		print_table(summary);
	json_decref(summary);
}

int cmd_report(int argc, char **argv)
{
	static const struct option options[] = {
		{ "csv", no_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	struct report r = { 0 };
	int option, form = 0, status;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == '?' || form)
			die_usage("report: give --csv or --json, not both");
		form = option;
	}
	if (optind + 1 != argc)
		die_usage("report: name the directory of one journal");
	r.dir = argv[optind];
	read_journal(&r);
	if (form == 'c')
		print_csv(&r.history);
	else
		print_summary(&r, form == 'j');
	status = tell_damage(&r);
	forget(&r);
	return status;
}
