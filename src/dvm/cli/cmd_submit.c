/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm run, submit, batch: tasks from arguments, lines and JSON. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/results.h"
#include "dvm/core/dvm_msg.h"
#include "libutil/decimal.h"

#define BATCH 1000 /* tasks in a request */

struct submission {
	const char *dvm;
	json_t *task;         /* what all have in common: ranks, cores, ... */
	json_t *tasks;        /* that are to be sent */
	const char *json, *lines, *array, *report;
	const char *journal, *local, *orphan; /* of batch, for its DVM; */
	bool take_over;                       /* also this */
	bool wait, quiet, tied;
	const char *file;     /* whose lines are read, NULL: none's */
	size_t given;         /* lines of it, or tasks without one, so far */
	size_t numbers[BATCH]; /* of tasks: what was given when they came */
	json_int_t line, taken; /* of batch: the present one; that of earlier ones */
	json_t *profile;      /* NULL: it has been sent */
	char *profile_id;
	struct conn *conn;
	struct results results;
};

/* ---- options ---- */

static void set_number(struct submission *s, const char *key, const char *text)
{
	uint32_t n;

	if (!decimal_u32(text, 0, INT32_MAX, &n))
		die_usage("%s must be a whole number", key);
	json_object_set_new(s->task, key, json_integer(n));
}

static void set_memory(struct submission *s, const char *text)
{
	static const char units[] = "KMGT";
	const char *at = text, *unit;
	uint64_t n;
	int shift = 0;

	if (!decimal_take(&at, INT64_MAX, &n))
		die_usage("--mem is a number of bytes, or one with K, M, G or T");
	unit = *at ? strchr(units, *at) : NULL;
	if (*at && (!unit || at[1]))
		die_usage("--mem: unknown unit \"%s\"", at);
	if (unit)
		shift = 10 * (int)(unit - units + 1);
	if (n > (uint64_t)INT64_MAX >> shift)
		die_usage("--mem: %s is too much", text);
	json_object_set_new(s->task, "memory", json_integer((json_int_t)(n << shift)));
}

/* As of srun: minutes, minutes:seconds, hours:minutes:seconds. */
static void set_time(struct submission *s, const char *text)
{
	unsigned a, b, c;
	char rest;
	long long seconds;

	if (sscanf(text, "%u:%u:%u%c", &a, &b, &c, &rest) == 3)
		seconds = a * 3600LL + b * 60 + c;
	else if (sscanf(text, "%u:%u%c", &a, &b, &rest) == 2)
		seconds = a * 60LL + b;
	else if (sscanf(text, "%u%c", &a, &rest) == 1)
		seconds = a * 60LL;
	else
		die_usage("--time is MINUTES, MINUTES:SECONDS or HOURS:MINUTES:SECONDS");
	json_object_set_new(s->task, "time", json_integer(seconds));
}

static void set_counter(struct submission *s, const char *text)
{
	const char *equals = strchr(text, '=');
	json_t *counters = json_object_get(s->task, "counters");
	uint32_t n;
	char *name;

	if (!equals || !decimal_u32(equals + 1, 0, INT32_MAX, &n))
		die_usage("--counter is NAME=NUMBER");
	if (!counters) {
		counters = json_object();
		json_object_set_new(s->task, "counters", counters);
	}
	name = strndup(text, (size_t)(equals - text));
	json_object_set_new(counters, name ? name : "", json_integer(n));
	free(name);
}

static char *absolute(const char *path)
{
	char cwd[DVM_TEXT_MAX], *out;

	if (*path == '/')
		return strdup(path);
	if (!getcwd(cwd, sizeof(cwd)) || asprintf(&out, "%s/%s", cwd, path) < 0)
		die("the working directory has no name: %s", strerror(errno));
	return out;
}

static void set_output(struct submission *s, const char *path)
{
	char *whole = absolute(path);

	json_object_set_new(s->task, "path", json_string(whole));
	json_object_set_new(s->task, "output", json_string("file"));
	free(whole);
}

static const struct option long_options[] = {
	{ "ranks", required_argument, NULL, 'n' },
	{ "ntasks", required_argument, NULL, 'n' },
	{ "cores", required_argument, NULL, 'c' },
	{ "gpus", required_argument, NULL, 'g' },
	{ "nodes", required_argument, NULL, 'N' },
	{ "per-node", required_argument, NULL, 'p' },
	{ "exclusive", no_argument, NULL, 'x' },
	{ "pmi", no_argument, NULL, 'i' },
	{ "mem", required_argument, NULL, 'm' },
	{ "counter", required_argument, NULL, 'C' },
	{ "time", required_argument, NULL, 't' },
	{ "retries", required_argument, NULL, 'r' },
	{ "priority", required_argument, NULL, 'P' },
	{ "name", required_argument, NULL, 'J' },
	{ "output", required_argument, NULL, 'o' },
	{ "no-output", no_argument, NULL, 'O' },
	{ "dvm", required_argument, NULL, 'd' },
	{ "wait", no_argument, NULL, 'w' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "json", required_argument, NULL, 'j' },
	{ "each-line", required_argument, NULL, 'l' },
	{ "array", required_argument, NULL, 'a' },
	{ "report", required_argument, NULL, 'R' },
	{ "journal", required_argument, NULL, 'D' },
	{ "local", required_argument, NULL, 'L' },
	{ "orphan", required_argument, NULL, 'W' },
	{ "take-over", no_argument, NULL, 'T' },
	{ 0 },
};

static void take_option(struct submission *s, int option, const char *value)
{
	switch (option) {
	case 'n': set_number(s, "ranks", value); break;
	case 'c': set_number(s, "cores", value); break;
	case 'g': set_number(s, "gpus", value); break;
	case 'N': set_number(s, "nodes", value); break;
	case 'p': set_number(s, "per_node", value); break;
	case 'r': set_number(s, "retries", value); break;
	case 'P': set_number(s, "priority", value); break;
	case 'x': json_object_set_new(s->task, "exclusive", json_true()); break;
	case 'i': json_object_set_new(s->task, "pmi", json_true()); break;
	case 'm': set_memory(s, value); break;
	case 'C': set_counter(s, value); break;
	case 't': set_time(s, value); break;
	case 'J': json_object_set_new(s->task, "name", json_string(value)); break;
	case 'o': set_output(s, value); break;
	case 'O': json_object_set_new(s->task, "output", json_string("none")); break;
	case 'd': s->dvm = value; break;
	case 'w': s->wait = true; break;
	case 'q': s->quiet = true; break;
	case 'j': s->json = value; break;
	case 'l': s->lines = value; break;
	case 'a': s->array = value; break;
	case 'R': s->report = value; break;
	case 'D': s->journal = value; break;
	case 'L': s->local = value; break;
	case 'W': s->orphan = value; break;
	case 'T': s->take_over = true; break;
	default: die_usage("unknown option, or its value is missing");
	}
}

static void take_options(struct submission *s, int argc, char **argv)
{
	int option;

	s->task = json_object();
	s->tasks = json_array();
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+n:c:g:N:J:o:t:", long_options,
				     NULL)) != -1)
		take_option(s, option, optarg);
}

static bool has_options_of_batch(const struct submission *s)
{
	return s->journal || s->local || s->orphan || s->take_over;
}

static void refuse_options_of_batch(const struct submission *s)
{
	if (has_options_of_batch(s))
		die_usage("--journal, --local, --orphan and --take-over are options of up and batch");
}

/* ---- sending ---- */

static void on_event(void *arg, json_t *event)
{
	struct submission *s = arg;

	results_event(&s->results, event);
}

static void open_report(struct submission *s)
{
	if (!s->report || s->results.report)
		return;
	s->results.report = fopen(s->report, "we");
	if (!s->results.report)
		die("cannot write %s: %s", s->report, strerror(errno));
}

static void begin(struct submission *s)
{
	open_report(s);
	s->profile = make_profile();
	s->conn = conn_open(s->dvm); /* last: its first request goes soon after */
	s->profile_id = strdup(get_text(s->profile, "id"));
	s->results.quiet = s->quiet;
	conn_on_event(s->conn, on_event, s);
	results_begin(&s->results);
}

/* A task that cannot be; the others are taken. */
__attribute__((format(printf, 3, 4)))
static void refuse(struct submission *s, size_t number, const char *fmt, ...)
{
	va_list ap;

	s->results.refused++;
	if (s->file)
		fprintf(stderr, "pmi2x-dvm: line %zu of %s is rejected: ", number,
			s->file);
	else
		fprintf(stderr, "pmi2x-dvm: task %zu is rejected: ", number);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void note_refused(struct submission *s, json_t *refused)
{
	json_t *r;
	size_t i;

	json_array_foreach(refused, i, r)
		refuse(s, s->numbers[get_number(r, "index")], "%s: %s",
		       get_text(r, "key"), get_text(r, "why"));
}

static void print_ids(json_t *ids)
{
	json_t *id;
	size_t i;

	json_array_foreach(ids, i, id)
		if (json_is_integer(id))
			printf("%lld\n", (long long)json_integer_value(id));
}

/* Sends the tasks that are collected so far. */
static void flush(struct submission *s)
{
	json_t *request, *event, *refused;
	size_t n = json_array_size(s->tasks);

	if (!n)
		return;
	request = json_pack("{s:s,s:O,s:b,s:b,s:b}", "op", "submit", "tasks",
			    s->tasks, "watch", s->wait, "tied", s->tied,
			    "spawned", s->tied);
	json_object_set_new(request, "profile", s->profile ? s->profile :
		json_pack("{s:s}", "id", s->profile_id));
	s->profile = NULL;
	event = conn_ask(s->conn, request);
	refused = json_object_get(event, "refused");
	s->results.submitted += n - json_array_size(refused);
	note_refused(s, refused);
	if (s->tied)
		s->results.only = json_integer_value(
			json_array_get(json_object_get(event, "ids"), 0));
	if (!s->wait)
		print_ids(json_object_get(event, "ids"));
	json_decref(event);
	json_array_clear(s->tasks);
}

static void add(struct submission *s, json_t *task)
{
	s->numbers[json_array_size(s->tasks)] = s->given;
	json_array_append_new(s->tasks, task);
	if (json_array_size(s->tasks) >= BATCH)
		flush(s);
}

/* ---- from arguments ---- */

/* "{}" in an argument becomes the value. */
static json_t *replaced(const char *argument, const char *value)
{
	const char *at = value ? strstr(argument, "{}") : NULL;
	char *text;
	json_t *out;

	if (!at)
		return json_string(argument);
	if (asprintf(&text, "%.*s%s%s", (int)(at - argument), argument, value,
		     at + 2) < 0)
		die("out of memory");
	out = json_string(text);
	free(text);
	return out;
}

/* NULL: an argument is no text, which has been said. */
static json_t *command(struct submission *s, int argc, char **argv, const char *value)
{
	json_t *list = json_array();
	bool used = !value;
	int rc = 0;

	for (int i = 0; i < argc; i++) {
		used = used || strstr(argv[i], "{}");
		rc |= json_array_append_new(list, replaced(argv[i], value));
	}
	if (!used) /* as the last argument, like xargs */
		rc |= json_array_append_new(list, json_string(value));
	if (!rc)
		return list;
	refuse(s, s->given, "an argument is not UTF-8 text");
	json_decref(list);
	return NULL;
}

static void add_command(struct submission *s, int argc, char **argv,
			const char *value)
{
	json_t *list, *task;

	if (!s->file)
		s->given++;
	list = command(s, argc, argv, value);
	if (!list)
		return;
	task = json_deep_copy(s->task);
	json_object_set_new(task, "argv", list);
	add(s, task);
}

static void add_array(struct submission *s, int argc, char **argv)
{
	const char *at = s->array;
	uint64_t first, last;
	char value[32];

	if (!decimal_take(&at, INT32_MAX, &first) || *at++ != '-' ||
	    !decimal_take(&at, INT32_MAX, &last) || *at || last < first)
		die_usage("--array is FIRST-LAST");
	for (; first <= last; first++) {
		snprintf(value, sizeof(value), "%llu", (unsigned long long)first);
		add_command(s, argc, argv, value);
	}
}

static FILE *open_input(struct submission *s, const char *path)
{
	FILE *in = strcmp(path, "-") ? fopen(path, "re") : stdin;
	struct stat st;

	if (in && !fstat(fileno(in), &st) && S_ISDIR(st.st_mode)) {
		errno = EISDIR;
		in = NULL;
	}
	if (!in)
		die("cannot read %s: %s", path, strerror(errno));
	s->file = path;
	return in;
}

static void for_lines(struct submission *s, FILE *in, int argc, char **argv,
		      void (*fn)(struct submission *s, char *line, int argc,
				 char **argv))
{
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while ((n = getline(&line, &size, in)) > 0) {
		if (line[n - 1] == '\n')
			line[--n] = '\0';
		s->given++;
		if (strlen(line) != (size_t)n)
			refuse(s, s->given, "the line contains a NUL byte");
		else if (n)
			fn(s, line, argc, argv);
	}
	if (ferror(in))
		refuse(s, s->given + 1, "cannot read the file: %s", strerror(errno));
	free(line);
	fclose(in);
}

static void add_line(struct submission *s, char *line, int argc, char **argv)
{
	add_command(s, argc, argv, line);
}

/* Also as editors of other systems leave one. */
static bool is_blank(const char *line)
{
	return !line[strspn(line, " \t\r")];
}

/* The options apply where the line says nothing. */
static void add_json(struct submission *s, char *line, int argc, char **argv)
{
	json_error_t error;
	json_t *task;

	if (is_blank(line))
		return;
	task = json_loads(line, 0, &error);
	if (!json_is_object(task)) {
		refuse(s, s->given, "not a JSON object: %s: %.60s",
		       task ? "another JSON value" : error.text, line);
		json_decref(task);
		return;
	}
	json_object_update_missing(task, s->task);
	add(s, task);
}

/* PROGRAM ARGUMENT... ::: VALUE... */
static void add_arguments(struct submission *s, int argc, char **argv)
{
	int colons = 0;

	while (colons < argc && strcmp(argv[colons], ":::"))
		colons++;
	if (!colons)
		die_usage("which program?");
	if (s->array)
		add_array(s, colons, argv);
	else if (s->lines)
		for_lines(s, open_input(s, s->lines), colons, argv, add_line);
	else if (colons == argc)
		add_command(s, argc, argv, NULL);
	for (int i = colons + 1; i < argc; i++)
		add_command(s, colons, argv, argv[i]);
}

/* ---- commands ---- */

static int finish(struct submission *s)
{
	int rc;

	flush(s);
	if (!s->wait) {
		conn_close(s->conn);
		return s->results.refused ? 1 : 0;
	}
	results_collect(&s->results, s->conn);
	rc = results_end(&s->results, s->conn);
	conn_close(s->conn);
	return rc;
}

int cmd_submit(int argc, char **argv)
{
	static struct submission s;

	take_options(&s, argc, argv);
	refuse_options_of_batch(&s);
	if (s.json && optind < argc)
		die_usage("submit: give a program or --json, not both");
	begin(&s);
	if (s.json)
		for_lines(&s, open_input(&s, s.json), 0, NULL, add_json);
	else
		add_arguments(&s, argc - optind, argv + optind);
	return finish(&s);
}

/* ---- run ---- */

/* Another process that shares the descriptor may have made it non-blocking. */
static void wait_until_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	(void)poll(&p, 1, -1);
}

static void write_bytes(int fd, json_t *data)
{
	size_t n;
	char *bytes = get_bytes(data, &n);

	for (size_t done = 0; done < n;) {
		ssize_t w = write(fd, bytes + done, n - done);

		if (w < 0 && errno == EAGAIN)
			wait_until_writable(fd);
		else if (w < 0 && errno != EINTR)
			die("output of the task cannot be written: %s",
			    strerror(errno));
		done += w > 0 ? (size_t)w : 0;
	}
	free(bytes);
}

/* And what it spawns, as srun does. */
static int follow(struct submission *s)
{
	struct results *r = &s->results;
	json_t *event;

	while (r->ended < r->submitted && (event = conn_next(s->conn))) {
		if (!strcmp(event_name(event), "output"))
			write_bytes((int)get_number(event, "fd"),
				    json_object_get(event, "data"));
		else
			results_event(r, event);
		json_decref(event);
	}
	if (r->ended < r->submitted) {
		conn_say_logs(s->conn);
		die("the DVM ended, and the task with it");
	}
	return r->code;
}

int cmd_run(int argc, char **argv)
{
	static struct submission s = { .wait = true, .tied = true, .quiet = true };

	take_options(&s, argc, argv);
	refuse_options_of_batch(&s);
	if (s.json || s.lines || s.array)
		die_usage("run starts one task; use submit for several");
	if (optind == argc)
		die_usage("run: name a program");
	if (!json_object_get(s.task, "output"))
		json_object_set_new(s.task, "output", json_string("forward"));
	begin(&s); /* when this client goes, the head ends the task */
	add_command(&s, argc - optind, argv + optind, NULL);
	flush(&s);
	return s.results.refused ? 1 : follow(&s);
}

/* ---- batch ---- */

static void add_shell_line(struct submission *s, char *line, int argc, char **argv)
{
	char *shell[] = { "/bin/sh", "-c", line };
	json_t *list, *task;

	if (*line == '#' || is_blank(line) || ++s->line <= s->taken)
		return;
	list = command(s, 3, shell, NULL);
	if (!list)
		return;
	task = json_deep_copy(s->task);
	json_object_set_new(task, "argv", list);
	json_object_set_new(task, "line", json_integer(s->line));
	add(s, task);
}

/*
 * Where its journal is by itself: in a job, which may be requeued, and where it can be
 * written. NULL: nowhere.
 */
static char *own_journal(void)
{
	const char *job = getenv("SLURM_JOB_ID");
	char *dir;

	if (!job || access(".", W_OK) < 0)
		return NULL;
	if (asprintf(&dir, "pmi2x-dvm.%s.journal", job) < 0)
		die("out of memory");
	return dir;
}

static bool is_there(const char *dir)
{
	char path[DVM_PATH_MAX];

	snprintf(path, sizeof(path), "%s/journal", dir);
	return !access(path, F_OK);
}

static int add_up_option(char **args, char *option, const char *value)
{
	if (!value)
		return 0;
	args[0] = option;
	args[1] = (char *)(uintptr_t)value;
	return 2;
}

/* Start the DVM, which goes on with the journal when there is one. */
static void up(const struct submission *s, const char *journal)
{
	char *args[9] = { "up" };
	int n = 1, file = optind;

	n += add_up_option(args + n, "--local", s->local);
	n += add_up_option(args + n, "--orphan", s->orphan);
	n += add_up_option(args + n, journal && is_there(journal) ? "--resume" : "--journal",
			   journal);
	if (s->take_over && journal)
		args[n++] = "--take-over";
	optind = 1;
	(void)cmd_up(n, args);
	optind = file;
}

/*
 * Takes up the tasks of a DVM that goes on: its tasks are those of the lines that have
 * been taken.
 */
static void take_up(struct submission *s)
{
	json_t *event = conn_ask(s->conn, json_pack("{s:s,s:b}", "op", "wait",
						    "all", 1));

	s->taken = get_number(event, "line");
	s->results.submitted = (size_t)get_number(event, "tasks");
	s->results.before = (size_t)get_number(event, "ended");
	s->results.failed_before = (size_t)get_number(event, "failed");
	json_decref(event);
}

static bool is_of_journal(const char *name)
{
	return !strncmp(name, "journal", 7) || !strncmp(name, "owner.", 6) ||
	       !strcmp(name, "lock");
}

static void remove_journal(const char *dir)
{
	DIR *files = opendir(dir);
	struct dirent *e;

	while (files && (e = readdir(files)))
		if (is_of_journal(e->d_name))
			unlinkat(dirfd(files), e->d_name, 0);
	if (files)
		closedir(files);
	rmdir(dir);
}

/* With a DVM of its own, which ends afterwards. */
static int batch_alone(struct submission *s, FILE *in)
{
	char *down[] = { "down", "--cancel", NULL };
	char *own = s->journal ? NULL : own_journal();
	int rc;

	open_report(s); /* what cannot be is said before there is a DVM */
	up(s, own ? own : s->journal);
	up_pass_on_terminate();
	begin(s);
	take_up(s);
	for_lines(s, in, 0, NULL, add_shell_line);
	rc = finish(s);
	optind = 1;
	(void)cmd_down(2, down);
	if (own)
		remove_journal(own);
	free(own);
	return rc;
}

/*
 * Up, the tasks of the file, down: in a batch script that has nothing else to do. A DVM
 * that is up already is used, and stays.
 */
int cmd_batch(int argc, char **argv)
{
	static struct submission s = { .wait = true };
	FILE *in;

	take_options(&s, argc, argv);
	if (optind + 1 != argc)
		die_usage("batch: name a file (-: standard input)");
	in = open_input(&s, argv[optind]);
	if (!s.dvm && !dvm_any_up())
		return batch_alone(&s, in);
	if (has_options_of_batch(&s))
		die("--journal, --local, --orphan and --take-over are for a DVM that batch starts, and a DVM is up already");
	begin(&s);
	for_lines(&s, in, 0, NULL, add_shell_line);
	return finish(&s);
}
