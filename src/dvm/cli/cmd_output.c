/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm output: the output of a task, from its files or result, or of a batch. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/complete_output.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/options.h"
#include "dvm/cli/output_results.h"
#include "dvm/core/dvm_msg.h"
#include "dvm/core/output_path.h"

#define PIECE 65536

struct output_options {
	const char *dvm;
	bool failed;
};

static void die_written(void)
{
	die("output cannot be written: %s", strerror(errno));
}

static void copy_file(json_t *task, const char *path, FILE *to)
{
	FILE *in = fopen(path, "re");
	static char piece[PIECE];
	size_t n;

	if (!in)
		die("cannot read %s: %s; the task ran on %s", path, strerror(errno),
		    json_array_size(json_object_get(task, "nodes")) ?
		    json_string_value(json_array_get(json_object_get(task, "nodes"), 0)) :
		    "no node");
	while ((n = fread(piece, 1, sizeof(piece), in)) > 0)
		if (fwrite(piece, 1, n, to) != n)
			die_written();
	if (ferror(in))
		die("cannot read %s: %s", path, strerror(errno));
	fclose(in);
}

/* Ranks may have a file each. */
static void copy_files(json_t *task, const char *path, FILE *to)
{
	long long ranks = output_path_has(path, 'r') ? get_number(task, "ranks") : 1;
	struct output_numbers n = {
		.task = (uint64_t)get_number(task, "id"),
		.instance = (uint32_t)get_number(task, "instance"),
	};
	char name[PATH_MAX];

	for (; n.rank < ranks; n.rank++) {
		if (!output_path_expand(name, sizeof(name), path, &n))
			die("%s: %s", path, strerror(ENAMETOOLONG));
		copy_file(task, name, to);
	}
}

/* A result_text_fn; `what`: the stream's name for people. */
static void print_end(void *what, json_t *task, const char *key, FILE *to)
{
	size_t len;
	char *bytes = get_bytes(json_object_get(task, key), &len);

	if (len == DVM_TAIL_MAX && !json_object_get(task, "files_lost"))
		fprintf(stderr, "pmi2x-dvm: only the last %d bytes of %s are kept; --output FILE keeps all\n",
			DVM_TAIL_MAX, (const char *)what);
	if (fwrite(bytes, 1, len, to) != len || fflush(to))
		die_written();
	free(bytes);
}

static struct printed_output printed; /* from files of complete output */

static void print_stream(json_t *task, const char *file, const char *key, char *what, FILE *to)
{
	const char *path = get_text(task, file);

	if (*path)
		copy_files(task, path, to);
	else
		complete_output_print(task, key, NULL, &printed, to, print_end, what);
}

static void check_state(json_t *task)
{
	const char *state = get_text(task, "state");
	bool lives = !strcmp(state, "queued") || !strcmp(state, "running");

	if (lives && (!strcmp(state, "queued") || !*get_text(task, "path")))
		die("task %lld is %s: its output is kept when it has ended",
		    get_number(task, "id"), state);
}

static struct output_options take_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "failed", no_argument, NULL, 'f' },
		{ 0 },
	};
	struct output_options o = { 0 };
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1)
		switch (option) {
		case 'd': o.dvm = optarg; break;
		case 'f': o.failed = true; break;
		default: die_option(argv, option, options);
		}
	if (optind == argc)
		die_usage("output: name a task, or the file of a batch");
	return o;
}

static int output_of_task(const char *dvm, const char *task_number)
{
	json_int_t id = get_task(task_number);
	struct conn *c = conn_look(dvm);
	json_t *event = conn_ask(c, json_pack("{s:s,s:I}", "op", "show", "id", id));
	json_t *task = json_object_get(event, "task");

	check_state(task);
	print_stream(task, "path", "out", "standard output", stdout);
	print_stream(task, "error", "err", "standard error", stderr);
	if (fflush(stdout))
		die_written();
	complete_output_say(&printed);
	json_decref(event);
	conn_close(c);
	return 0;
}

int cmd_output(int argc, char **argv)
{
	struct output_options o = take_options(argc, argv);
	bool task = is_number(argv[optind]);

	if (task && (o.failed || optind + 1 != argc))
		die_usage("output: give one task, or the file of a batch and lines of it");
	if (task)
		return output_of_task(o.dvm, argv[optind]);
	return output_results(argv[optind], argv + optind + 1, argc - optind - 1, o.failed);
}
