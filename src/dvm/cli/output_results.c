/* SPDX-License-Identifier: BSD-3-Clause */
/* The output in a file of results: output_results.h. */
#include "dvm/cli/output_results.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/complete_output.h"
#include "dvm/cli/number_list.h"
#include "dvm/cli/task_text.h"
#include "dvm/core/dvm_msg.h"
#include "libutil/array.h"
#include "libutil/hash.h"
#include "libutil/plural.h"

#define LINES_MAX INT64_MAX

/* A result; a later one of the same line and command takes its place. */
struct entry {
	uint64_t line;
	uint32_t command; /* hash */
	off_t at;
};

struct reading {
	FILE *in;
	char **lines;
	int count;
	bool failed;
	struct entry *entries;
	size_t n, cap;
	const char *file;      /* of results */
	struct printed_output printed;
	size_t lost; /* results whose output is missing */
};

static bool is_named(const struct reading *r, uint64_t line)
{
	struct number_range range;

	for (int i = 0; i < r->count; i++)
		for (const char *at = r->lines[i]; *at && number_list_take(&at, LINES_MAX, &range);)
			if (line >= range.first && line <= range.last &&
			    (line - range.first) % range.step == 0)
				return true;
	return !r->count;
}

static void check_lines(char **lines, int count)
{
	for (int i = 0; i < count; i++)
		if (!number_list_ok(lines[i], LINES_MAX))
			die_usage("output: \"%s\" is no number of a line, nor a range of them",
				  lines[i]);
}

static void add_entry(struct reading *r, json_t *result, off_t at)
{
	const char *command = get_text(result, "command");
	uint64_t line = (uint64_t)get_number(result, "line");

	if (!is_named(r, line))
		return;
	if (array_grow(&r->entries, r->n, &r->cap, sizeof(*r->entries)))
		die("out of memory");
	r->entries[r->n++] = (struct entry){
		line, hash_seeded(0, command, strlen(command)), at,
	};
}

/* The result at the position of the file; NULL: the file ends. */
static json_t *read_result(FILE *in)
{
	static char *text;
	static size_t size;
	ssize_t n = getline(&text, &size, in);
	json_t *result = n > 0 ? json_loadb(text, (size_t)n, JSON_ALLOW_NUL, NULL) : NULL;

	return n > 0 && !result ? json_object() : result;
}

static int by_line(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->command != y->command)
		return x->command < y->command ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void find_results(struct reading *r)
{
	json_t *result;
	off_t at = 0;

	while ((result = read_result(r->in))) {
		if (json_object_get(result, "line"))
			add_entry(r, result, at);
		json_decref(result);
		at = ftello(r->in);
	}
	if (r->n)
		qsort(r->entries, r->n, sizeof(*r->entries), by_line);
}

static bool is_superseded(const struct reading *r, size_t i)
{
	const struct entry *e = &r->entries[i];

	return i + 1 < r->n && e[1].line == e->line && e[1].command == e->command;
}

/* A result_text_fn. */
static void write_text(void *arg, json_t *result, const char *key, FILE *to)
{
	json_t *text = json_object_get(result, key);
	size_t len = json_string_length(text);

	if (len && (fwrite(json_string_value(text), 1, len, to) != len || fflush(to)))
		die("output cannot be written: %s", strerror(errno));
}

static void print_stream(struct reading *r, json_t *result, const char *key, FILE *to)
{
	complete_output_print(result, key, r->file, &r->printed, to, write_text, NULL);
}

static void print_result(struct reading *r, json_t *result)
{
	if (r->failed && strcmp(get_text(result, "state"), "failed"))
		return;
	print_stream(r, result, "out", stdout);
	print_stream(r, result, "err", stderr);
	r->lost += json_is_true(json_object_get(result, "output_lost"));
}

static void print_results(struct reading *r)
{
	json_t *result;

	for (size_t i = 0; i < r->n; i++) {
		if (is_superseded(r, i))
			continue;
		if (fseeko(r->in, r->entries[i].at, SEEK_SET) < 0 ||
		    !(result = read_result(r->in)))
			die("the file cannot be read: %s", strerror(errno));
		print_result(r, result);
		json_decref(result);
	}
}

/* FILE.results, if there is one. */
static FILE *open_results(struct reading *r, const char *file)
{
	char *beside;
	FILE *in;

	if (asprintf(&beside, "%s.results", file) < 0)
		die("out of memory");
	in = fopen(beside, "re");
	r->file = in ? beside : file;
	in = in ? in : fopen(file, "re");
	if (!in)
		die("cannot read %s: %s", file, strerror(errno));
	return in;
}

int output_results(const char *file, char **lines, int count, bool failed)
{
	struct reading r = { .lines = lines, .count = count, .failed = failed };

	check_lines(lines, count);
	r.in = open_results(&r, file);
	find_results(&r);
	print_results(&r);
	complete_output_say(&r.printed);
	if (r.lost)
		fprintf(stderr, "pmi2x-dvm: the output of %zu task%s was lost with an earlier run\n",
			r.lost, plural(r.lost));
	if (!r.n)
		fprintf(stderr, "pmi2x-dvm: %s has no such results\n", file);
	fclose(r.in);
	free(r.entries);
	return !r.n;
}
