/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm submit: tasks from arguments, lines and JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/dvm.h"
#include "dvm/cli/interrupt.h"
#include "dvm/cli/submission.h"
#include "libutil/decimal.h"

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
		submission_add_command(s, argc, argv, value);
	}
}

static void add_line(struct submission *s, char *line, int argc, char **argv)
{
	submission_add_command(s, argc, argv, line);
}

/* The options apply where the line says nothing. */
static void add_json(struct submission *s, char *line, int argc, char **argv)
{
	json_error_t error;
	json_t *task;
	char *text;

	if (line_is_blank(line))
		return;
	task = json_loads(line, 0, &error);
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

/* Where values begin: ":::", values; "::::", files of them. */
static bool is_separator(const char *argument)
{
	return !strcmp(argument, ":::") || !strcmp(argument, "::::");
}

static int find_separator(int argc, char **argv)
{
	int at = 0;

	while (at < argc && !is_separator(argv[at]))
		at++;
	for (int i = at + 1; i < argc; i++)
		if (is_separator(argv[i]))
			die_usage("submit: %s after %s: values can be given once", argv[i],
				  argv[at]);
	return at;
}

/* PROGRAM ARGUMENT... ::: VALUE... */
static void add_arguments(struct submission *s, int argc, char **argv)
{
	int values = find_separator(argc, argv);
	bool files = values < argc && !strcmp(argv[values], "::::");

	if (s->array)
		add_array(s, values, argv);
	else if (s->lines)
		submission_for_lines(s, submission_open_input(s, s->lines), values, argv, add_line);
	else if (values == argc)
		submission_add_command(s, argc, argv, NULL);
	for (int i = values + 1; i < argc; i++)
		if (files)
			submission_for_lines(s, submission_open_input(s, argv[i]), values, argv,
					     add_line);
		else
			submission_add_command(s, values, argv, argv[i]);
}

int cmd_submit(int argc, char **argv)
{
	static struct submission s = { .written = { .fd = -1 } };

	task_options_take(&s, argc, argv);
	task_options_refuse_batch(&s);
	if (s.json && optind < argc)
		die_usage("submit: give a program or --json, not both");
	if (!s.json && !find_separator(argc - optind, argv + optind))
		die_usage("submit: which program?");
	if (s.results.max_fails.set && !s.wait)
		die_usage("submit: --max-fails needs --wait");
	s.keeps = s.wait;
	s.named_results = s.wait && !s.report;
	if (s.wait)
		interrupt_catch();
	submission_begin(&s);
	if (s.json)
		submission_for_lines(&s, submission_open_input(&s, s.json), 0, NULL, add_json);
	else
		add_arguments(&s, argc - optind, argv + optind);
	return submission_finish(&s);
}
