/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm submit: tasks from arguments, lines and JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/dvm.h"
#include "dvm/cli/interrupt.h"
#include "dvm/cli/number_list.h"
#include "dvm/cli/standard_input.h"
#include "dvm/cli/submission.h"
#include "dvm/cli/value_lists.h"

/* A command, and several sources of values for it. */
struct submitter {
	struct submission s;
	struct value_lists values;
	int argc; /* of the command */
	char **argv;
};

typedef void (*line_fn)(struct submission *s, char *line, int argc, char **argv);

/* Each number of --array, as a line. */
static void for_array(struct submission *s, int argc, char **argv, line_fn fn)
{
	const char *at = s->array;
	struct number_range r;
	char text[32];

	do {
		if (!number_list_take(&at, INT32_MAX, &r))
			return;
		for (; r.first <= r.last && !submission_stops(s); r.first += r.step) {
			snprintf(text, sizeof(text), "%0*llu", r.width,
				 (unsigned long long)r.first);
			fn(s, text, argc, argv);
		}
	} while (*at);
}

static void add_line(struct submission *s, char *line, int argc, char **argv)
{
	submission_add_command(s, argc, argv, (const char *[]){ line }, 1);
}

/* The options apply where the line says nothing. */
static void add_json(struct submission *s, char *line, int argc, char **argv)
{
	json_error_t error;
	json_t *task;
	char *text;

	if (line_is_blank(line))
		return;
	task = json_loads(line, JSON_ALLOW_NUL, &error); /* the head rejects it with its key */
	if (!json_is_object(task)) {
		submission_refuse(s, s->given, "not a JSON object: %s: %.60s",
		       task ? "another JSON value" : error.text, line);
		json_decref(task);
		return;
	}
	json_object_update_missing(task, s->task);
	text = s->keeps ? submission_text(json_object_get(task, "argv")) : NULL;
	submission_add(s, task, text, false);
	free(text);
}

/* True: values begin behind it: ":::", values; "::::", files of them. */
static bool is_separator(const char *argument)
{
	return !strcmp(argument, ":::") || !strcmp(argument, "::::");
}

/* The index of the next one from `at` on, or argc. */
static int find_separator(int argc, char **argv, int at)
{
	while (at < argc && !is_separator(argv[at]))
		at++;
	return at;
}

/* The values of the separator at `at`, up to `end`. */
static void for_values(struct submission *s, char **values, int at, int end, int argc,
		       char **argv, line_fn fn)
{
	bool files = !strcmp(values[at], "::::");

	for (int i = at + 1; i < end && !submission_stops(s); i++)
		if (files)
			submission_for_lines(s, submission_open_input(s, values[i]), argc, argv, fn);
		else
			fn(s, values[i], argc, argv);
}

static void keep_value(struct submission *s, char *line, int argc, char **argv)
{
	struct submitter *u = (struct submitter *)s;

	if (!value_lists_add(&u->values, line))
		die("out of memory");
}

static void begin_list(struct submitter *u)
{
	if (!value_lists_begin(&u->values))
		die("out of memory");
}

static bool add_combination(void *arg, const char *const *values, size_t count)
{
	struct submitter *u = arg;

	submission_add_command(&u->s, u->argc, u->argv, values, count);
	return !submission_stops(&u->s);
}

/* Several sources of values: a task for each combination. */
static void add_combinations(struct submitter *u, int argc, char **argv, int at)
{
	struct submission *s = &u->s;

	u->argc = at;
	u->argv = argv;
	if (s->array) {
		begin_list(u);
		for_array(s, 0, NULL, keep_value);
	}
	if (s->lines) {
		begin_list(u);
		submission_for_lines(s, submission_open_input(s, s->lines), 0, NULL, keep_value);
	}
	for (int next; at < argc; at = next) {
		next = find_separator(argc, argv, at + 1);
		begin_list(u);
		for_values(s, argv, at, next, 0, NULL, keep_value);
	}
	s->file = NULL;
	s->given = 0;
	if (!value_lists_combine(&u->values, add_combination, u))
		die("out of memory");
	value_lists_free(&u->values);
}

/* PROGRAM ARGUMENT... [::: VALUE... | :::: FILE...]... */
static void add_arguments(struct submitter *u, int argc, char **argv)
{
	struct submission *s = &u->s;
	int at = find_separator(argc, argv, 0);
	int sources = !!s->array + !!s->lines;

	for (int i = at; i < argc; i = find_separator(argc, argv, i + 1))
		sources++;
	if (!sources)
		submission_add_command(s, argc, argv, NULL, 0);
	else if (sources > 1)
		add_combinations(u, argc, argv, at);
	else if (s->array)
		for_array(s, at, argv, add_line);
	else if (s->lines)
		submission_for_lines(s, submission_open_input(s, s->lines), at, argv, add_line);
	else
		for_values(s, argv, at, argc, at, argv, add_line);
}

static bool is_input(const char *file)
{
	return file && !strcmp(file, "-");
}

/* True: the command itself reads standard input. */
static bool reads_input(const struct submission *s, int argc, char **argv)
{
	bool files = false;

	for (int i = find_separator(argc, argv, 0); i < argc; i++) {
		if (files && is_input(argv[i]))
			return true;
		files = is_separator(argv[i]) ? !strcmp(argv[i], "::::") : files;
	}
	return is_input(s->json) || is_input(s->lines);
}

/* Wrong usage is said before anything is sent. */
static void check_usage(const struct submission *s, int argc, char **argv)
{
	if (s->json && optind < argc)
		die_usage("submit: give a program or --json, not both");
	if (!s->json && !find_separator(argc - optind, argv + optind, 0))
		die_usage("submit: which program?");
	if (s->array && !number_list_ok(s->array, INT32_MAX))
		die_usage("--array is NUMBER, FIRST-LAST or FIRST-LAST:STEP, or several of these with commas between them");
	if (s->results.max_fails.set && !s->wait)
		die_usage("submit: --max-fails needs --wait");
	if (s->stdin_goes && reads_input(s, argc - optind, argv + optind))
		die_usage("submit: tasks or values come from standard input: --stdin needs them in a file");
}

/* True: several tasks are made, since one value makes one task. */
static bool has_several_values(const struct submission *s, int argc, char **argv)
{
	int at = find_separator(argc, argv, 0);

	return s->array || s->lines ||
	       (at < argc && (argc - at > 2 || !strcmp(argv[at], "::::")));
}

int cmd_submit(int argc, char **argv)
{
	static struct submitter u = { .s = { .written = { .fd = -1 } } };
	struct submission *s = &u.s;

	task_options_take(s, argc, argv);
	task_options_refuse_batch(s);
	check_usage(s, argc, argv);
	if (s->json || has_several_values(s, argc - optind, argv + optind))
		output_options_check(s, !s->json);
	s->keeps = s->wait;
	s->named_results = s->wait && !s->report;
	if (s->stdin_goes)
		s->input = standard_input_read("submit");
	if (s->wait)
		interrupt_catch();
	submission_begin(s);
	if (s->json)
		submission_for_lines(s, submission_open_input(s, s->json), 0, NULL, add_json);
	else
		add_arguments(&u, argc - optind, argv + optind);
	return submission_finish(s);
}
