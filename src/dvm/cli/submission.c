/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending tasks to a DVM: submission.h. */
#include "dvm/cli/submission.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define uthash_fatal(what) die("%s", what)
#include <uthash.h>

#include "dvm/cli/interrupt.h"
#include "dvm/cli/lines.h"
#include "libio/clock.h"

/* Between two tries to send tasks to a DVM whose queue is full. */
#define ROOM_MIN_MS 10
#define ROOM_MAX_MS 500
#define REFUSED_SHOWN 10 /* tasks whose reason is printed */

/* A task that has been sent, and has not ended. */
struct sent {
	json_int_t id;
	struct sent_task of;
	char *command; /* of.command */
	UT_hash_handle hh;
};

/* ---- tasks that have not ended ---- */

static const struct sent_task *find_sent(void *arg, json_int_t id)
{
	struct submission *s = arg;
	struct sent *t;

	HASH_FIND(hh, s->sent, &id, sizeof(id), t);
	return t ? &t->of : NULL;
}

static void forget_sent(void *arg, json_int_t id)
{
	struct submission *s = arg;
	struct sent *t;

	HASH_FIND(hh, s->sent, &id, sizeof(id), t);
	HASH_DEL(s->sent, t);
	free(t->command);
	free(t);
}

void submission_know(struct submission *s, json_int_t id, size_t line, const char *command,
		     bool retry)
{
	struct sent *t = calloc(1, sizeof(*t));

	if (!t || !(t->command = strdup(command)))
		die("out of memory");
	t->id = id;
	t->of = (struct sent_task){ line, t->command, s->journal_at, retry };
	HASH_ADD(hh, s->sent, id, sizeof(t->id), t);
	s->last = (uint64_t)id > s->last ? (uint64_t)id : s->last;
}

json_t *submission_living(const struct submission *s)
{
	json_t *ids = json_array();
	const struct sent *t;

	for (t = s->sent; t; t = t->hh.next)
		json_array_append_new(ids, json_integer(t->id));
	return ids;
}

/* Results may have come before the answer that has their numbers. */
static void take_early(struct submission *s)
{
	json_t *early = s->results.early, *task;
	size_t i;

	s->results.early = NULL;
	json_array_foreach(early, i, task)
		results_task(&s->results, task);
	json_decref(early);
}

/* A name in a directory, by the name of the DVM; to be freed. */
static char *results_path(const struct submission *s, const char *dir, const char *suffix)
{
	const char *name = conn_name(s->conn), *slash = strrchr(name, '/');
	char *path;

	if (asprintf(&path, "%s%spmi2x-dvm.%s.%s", dir ? dir : "", dir ? "/" : "",
		     slash ? slash + 1 : name, suffix) < 0)
		die("out of memory");
	return path;
}

/* The file of submit --wait, or of lines of standard input: in the working directory, named after its first task. */
static void open_results(struct submission *s, json_t *ids)
{
	char number[32], *path;
	json_t *id = NULL;
	size_t i;
	int rc;

	json_array_foreach(ids, i, id)
		if (json_is_integer(id))
			break;
	if (!s->named_results || s->results.file || !id)
		return;
	s->named_results = false;
	snprintf(number, sizeof(number), "%lld.results", (long long)json_integer_value(id));
	path = results_path(s, NULL, number);
	results_file_keep(path);
	rc = results_file_open(&s->written, path);
	if (rc)
		fprintf(stderr, "pmi2x-dvm: no results are kept, as %s cannot be written: %s\n",
			path, strerror(-rc));
	else
		s->results.file = &s->written;
	free(path);
}

static void know_all(struct submission *s, json_t *ids)
{
	json_t *id;
	size_t i;

	open_results(s, ids);
	json_array_foreach(ids, i, id) {
		if (json_is_integer(id))
			submission_know(s, json_integer_value(id), s->numbers[i],
					s->commands[i], s->retries[i]);
		if (s->full[i])
			continue;
		free(s->commands[i]);
		s->commands[i] = NULL;
	}
	take_early(s);
}

/* ---- sending ---- */

static void on_event(void *arg, json_t *event)
{
	struct submission *s = arg;

	results_event(&s->results, event);
}

bool submission_stops(const struct submission *s)
{
	return interrupt_number() || results_too_many_failed(&s->results);
}

/* Too many tasks have failed: what waits is cancelled, and with "now" what runs. */
static void give_up(void *arg)
{
	struct submission *s = arg;
	json_t *ids = submission_living(s);

	if (json_array_size(ids))
		json_decref(conn_ask(s->conn, json_pack("{s:s,s:O,s:b}", "op", "cancel", "ids", ids,
							"queued", !s->results.max_fails.now)));
	json_decref(ids);
}

void submission_open_report(struct submission *s)
{
	if (!s->report || s->results.report)
		return;
	s->results.report = fopen(s->report, "we");
	if (!s->results.report)
		die("cannot write %s: %s", s->report, strerror(errno));
}

void submission_begin(struct submission *s)
{
	submission_open_report(s);
	s->conn = conn_open(s->dvm); /* its first request goes soon after */
	s->cwd = getcwd(NULL, 0);
	if (s->wait && !s->follow && !s->outputs && s->cwd)
		s->outputs = results_path(s, s->cwd, "outputs");
	s->profile = make_profile(s->outputs, s->input);
	s->input = NULL;
	s->results.outputs = s->outputs;
	s->profile_id = strdup(get_text(s->profile, "id"));
	if (!s->profile_id || !s->cwd)
		die("out of memory");
	s->results.quiet = s->quiet;
	conn_on_event(s->conn, on_event, s);
	s->results.give_up = give_up;
	if (s->keeps) {
		s->results.find = find_sent;
		s->results.forget = forget_sent;
		s->results.arg = s;
	}
	results_begin(&s->results);
}

void submission_refuse(struct submission *s, size_t number, const char *fmt, ...)
{
	va_list ap;

	if (s->results.refused++ >= REFUSED_SHOWN)
		return;
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

static void tell_refused_count(const struct submission *s)
{
	if (s->results.refused > REFUSED_SHOWN)
		fprintf(stderr, "pmi2x-dvm: %zu more are rejected\n",
			s->results.refused - REFUSED_SHOWN);
}

static void note_refused(struct submission *s, json_t *refused)
{
	json_t *r;
	size_t i;

	memset(s->full, 0, sizeof(s->full));
	json_array_foreach(refused, i, r)
		if (s->no_node && !strcmp(get_text(r, "key"), "on"))
			s->no_node();
		else if (json_is_true(json_object_get(r, "full")))
			s->full[get_number(r, "index")] = true;
		else
			submission_refuse(s, s->numbers[get_number(r, "index")], "%s: %s",
					  get_text(r, "key"), get_text(r, "why"));
}

/* Tasks that the queue had no room for are the first of the next request. */
static void keep_unsent(struct submission *s)
{
	json_t *left = json_array(), *task;
	size_t i, n = 0;

	json_array_foreach(s->tasks, i, task) {
		if (!s->full[i])
			continue;
		json_array_append(left, task);
		s->numbers[n] = s->numbers[i];
		s->retries[n] = s->retries[i];
		s->commands[n++] = s->commands[i];
	}
	json_decref(s->tasks);
	s->tasks = left;
}

/* Until there may be room; an accepted task shows that the queue moves. */
static void wait_for_room(struct submission *s, bool moves, unsigned *ms)
{
	if (!s->said_full && !s->quiet)
		fprintf(stderr, "pmi2x-dvm: the queue of the DVM %s is full: waiting for room\n",
			conn_name(s->conn));
	s->said_full = true;
	*ms = moves ? ROOM_MIN_MS : *ms * 2 > ROOM_MAX_MS ? ROOM_MAX_MS : *ms * 2;
	sleep_ms(*ms);
}

static void print_ids(json_t *ids)
{
	json_t *id;
	size_t i;

	json_array_foreach(ids, i, id)
		if (json_is_integer(id))
			printf("%lld\n", (long long)json_integer_value(id));
}

/*
 * Send one request with the collected tasks. `more`: others follow at once. Returns how many
 * tasks were accepted or rejected.
 */
static size_t send_tasks(struct submission *s, bool more)
{
	json_t *request, *event, *refused;
	size_t n = json_array_size(s->tasks);

	request = json_pack("{s:s,s:O,s:b,s:b,s:b}", "op", "submit", "tasks",
			    s->tasks, "watch", s->wait, "tied", s->tied,
			    "spawned", s->follow);
	json_object_set_new(request, "profile", s->profile ? s->profile :
		json_pack("{s:s}", "id", s->profile_id));
	if (more || s->incomplete)
		json_object_set_new(request, "more", json_boolean(more));
	s->incomplete = more;
	s->profile = NULL;
	event = conn_ask(s->conn, request);
	refused = json_object_get(event, "refused");
	s->results.submitted += n - json_array_size(refused);
	note_refused(s, refused);
	if (s->keeps)
		know_all(s, json_object_get(event, "ids"));
	if (s->follow)
		s->results.only = json_integer_value(
			json_array_get(json_object_get(event, "ids"), 0));
	if (!s->wait)
		print_ids(json_object_get(event, "ids"));
	json_decref(event);
	keep_unsent(s);
	return n - json_array_size(s->tasks);
}

static void flush(struct submission *s, bool more)
{
	unsigned ms = ROOM_MIN_MS;
	size_t sent;

	while ((json_array_size(s->tasks) || (s->incomplete && !more)) && !submission_stops(s)) {
		sent = send_tasks(s, more);
		if (json_array_size(s->tasks))
			wait_for_room(s, sent, &ms);
	}
	s->bytes = 0;
}

void submission_flush(struct submission *s)
{
	flush(s, false);
}

/* Bytes of its arguments, which may be most of it. */
static size_t size_of(json_t *task)
{
	json_t *each;
	size_t i, size = 0;

	json_array_foreach(json_object_get(task, "argv"), i, each)
		size += json_string_length(each);
	return size;
}

void submission_add(struct submission *s, json_t *task, const char *command, bool retry)
{
	size_t i = json_array_size(s->tasks);

	/* BATCH, as submission_stops: none of them will be sent */
	if (i == BATCH || !task_paths_ok(s, task)) {
		json_decref(task);
		return;
	}
	s->numbers[i] = s->given;
	s->retries[i] = retry;
	s->commands[i] = s->keeps ? strdup(command) : NULL;
	if (s->keeps && !s->commands[i])
		die("out of memory");
	json_array_append_new(s->tasks, task);
	s->bytes += size_of(task);
	if (json_array_size(s->tasks) >= BATCH || s->bytes >= BATCH_BYTES)
		flush(s, true);
}

/* ---- commands ---- */

/* NULL: the text, or a value, is no UTF-8 text. */
static json_t *filled(const char *text, const struct template_values *values)
{
	char *whole;
	json_t *out;

	if (!values)
		return json_string(text);
	whole = template_fill(text, values);
	if (!whole)
		die("out of memory");
	out = json_string(whole);
	free(whole);
	return out;
}

/* Values in a text that all tasks of the command have. */
static void fill_in(json_t *task, const char *key, const struct template_values *values)
{
	const char *text = json_string_value(json_object_get(task, key));

	if (text && values)
		json_object_set_new(task, key, filled(text, values));
}

json_t *submission_command(struct submission *s, int argc, char **argv,
			   const struct template_values *values)
{
	json_t *list = json_array();
	const char *cwd = json_string_value(json_object_get(s->task, "cwd"));
	bool used = !values || (cwd && template_has_value(cwd, values));
	int rc = 0;

	for (int i = 0; i < argc; i++) {
		used = used || template_has_value(argv[i], values);
		rc |= json_array_append_new(list, filled(argv[i], values));
	}
	for (size_t i = 0; !used && i < values->count; i++) /* the last arguments, like xargs */
		rc |= json_array_append_new(list, json_string(values->values[i]));
	if (!rc)
		return list;
	submission_refuse(s, s->given, "an argument is not UTF-8 text");
	json_decref(list);
	return NULL;
}

char *submission_text(json_t *list)
{
	struct buf b;
	json_t *each;
	size_t i;

	buf_init(&b, SIZE_MAX / 2);
	json_array_foreach(list, i, each)
		if (buf_puts(&b, i ? " " : "") ||
		    buf_puts(&b, json_is_string(each) ? json_string_value(each) : "?"))
			die("out of memory");
	if (buf_append(&b, "", 1))
		die("out of memory");
	return b.data;
}

void submission_add_command(struct submission *s, int argc, char **argv,
			    const char *const *values, size_t count)
{
	const struct template_values all = { values, count, ++s->made }, *v = count ? &all : NULL;
	json_t *list, *task;
	char *text;

	if (!s->file)
		s->given++;
	list = submission_command(s, argc, argv, v);
	if (!list)
		return;
	task = json_deep_copy(s->task);
	json_object_set_new(task, "argv", list);
	fill_in(task, "path", v);
	fill_in(task, "error", v);
	fill_in(task, "cwd", v);
	fill_in(task, "name", v);
	text = s->keeps ? submission_text(list) : NULL;
	submission_add(s, task, text, false);
	free(text);
}

/* ---- lines ---- */

FILE *submission_open_input(struct submission *s, const char *path)
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
	s->given = 0;
	return in;
}

/* Ends of lines, also those of other systems, and the mark that some editors begin with. */
static size_t strip(char *line, size_t n, bool first)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t cut = first && n >= 3 && !memcmp(line, mark, 3) ? 3 : 0;

	if (n && line[n - 1] == '\n')
		n--;
	if (n && line[n - 1] == '\r')
		n--;
	line[n] = '\0';
	memmove(line, line + cut, n - cut + 1);
	return n - cut;
}

/* Tasks that a slow pipe has named so far start now. */
static void on_idle(void *arg)
{
	submission_flush(arg);
}

void submission_for_lines(struct submission *s, FILE *in, int argc, char **argv,
		      void (*fn)(struct submission *s, char *line, int argc,
				 char **argv))
{
	struct lines lines;
	char *line;
	size_t n;

	lines_init(&lines, fileno(in), on_idle, s);
	while (!submission_stops(s) && (n = lines_next(&lines, &line)) > 0) {
		n = strip(line, n, !s->given);
		s->given++;
		if (strlen(line) != n)
			submission_refuse(s, s->given, "the line contains a NUL byte");
		else if (n)
			fn(s, line, argc, argv);
	}
	if (lines.error)
		submission_refuse(s, s->given + 1, "cannot read the file: %s",
				  strerror(lines.error));
	lines_free(&lines);
	fclose(in);
}

/* Blank also with the line ends of other systems. */
bool line_is_blank(const char *line)
{
	return !line[strspn(line, " \t\r")];
}

static void __attribute__((noreturn)) leave(const struct submission *s)
{
	size_t left = s->results.submitted - s->results.ended;

	fprintf(stderr, "%spmi2x-dvm: %zu task%s on: pmi2x-dvm wait, or pmi2x-dvm cancel --all\n",
		s->results.progress.tty ? "\n" : "", left, left == 1 ? " goes" : "s go");
	interrupt_die();
}

int submission_finish(struct submission *s)
{
	int rc;

	submission_flush(s);
	if (!s->wait) {
		tell_refused_count(s);
		conn_close(s->conn);
		return s->results.refused ? 1 : 0;
	}
	if (!results_collect(&s->results, s->conn, false) || interrupt_number())
		leave(s);
	tell_refused_count(s);
	rc = results_end(&s->results, s->conn);
	results_say_where(&s->results);
	conn_close(s->conn);
	return rc;
}

