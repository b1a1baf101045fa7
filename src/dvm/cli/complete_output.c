/* SPDX-License-Identifier: BSD-3-Clause */
/* Complete output of tasks, from their files: complete_output.h. */
#include "dvm/cli/complete_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/client.h"
#include "dvm/cli/task_text.h"
#include "libutil/plural.h"

#define RESULTS ".results"
#define OUTPUTS ".outputs"
#define PIECE 65536

char *complete_output_dir(const char *results)
{
	size_t len = strlen(results), cut = len - strlen(RESULTS);
	char *dir;

	if (len > strlen(RESULTS) && !strcmp(results + cut, RESULTS))
		len = cut;
	if (asprintf(&dir, "%.*s" OUTPUTS, (int)len, results) < 0)
		die("out of memory");
	return dir;
}

/* ---- one file ---- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The files may have been moved together with the file of results. */
static FILE *open_beside(const char *path, const char *results)
{
	char *dir = complete_output_dir(results), *beside;
	FILE *in;

	if (asprintf(&beside, "%s/%s", dir, last_part(path)) < 0)
		die("out of memory");
	in = fopen(beside, "re");
	free(beside);
	free(dir);
	return in;
}

static void note_lost(struct printed_output *p, const char *path, const char *why)
{
	if (!p->lost++)
		snprintf(p->why, sizeof(p->why), "%s%s%s", path, *path ? ": " : "", why);
}

static bool copy(FILE *in, struct printed_output *p, FILE *to)
{
	static char piece[PIECE];
	size_t n;

	while ((n = fread(piece, 1, sizeof(piece), in)) > 0) {
		if (fwrite(piece, 1, n, to) != n)
			die("output cannot be written: %s", strerror(errno));
		p->bytes += n;
	}
	return !ferror(in);
}

static bool print_file(const char *path, const char *results, struct printed_output *p, FILE *to)
{
	FILE *in = results ? open_beside(path, results) : NULL;
	bool whole;

	in = in ? in : fopen(path, "re");
	whole = in && copy(in, p, to);
	if (!whole)
		note_lost(p, path, strerror(errno));
	if (in)
		fclose(in);
	return whole;
}

/* ---- the files of a task ---- */

static bool is_of_stream(const char *path, const char *stream)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot + 1, stream);
}

/* By the numbers in them: the first ranks first. */
static int by_name(const void *a, const void *b)
{
	return strverscmp(last_part(*(const char *const *)a), last_part(*(const char *const *)b));
}

/* The files of the stream, sorted; to be freed. */
static const char **find_files(json_t *task, const char *stream, size_t *count)
{
	json_t *list = json_object_get(task, "files"), *each;
	const char **paths = calloc(json_array_size(list) + 1, sizeof(*paths));
	size_t i;

	if (!paths)
		die("out of memory");
	*count = 0;
	json_array_foreach(list, i, each)
		if (json_is_string(each) && is_of_stream(json_string_value(each), stream))
			paths[(*count)++] = json_string_value(each);
	qsort(paths, *count, sizeof(*paths), by_name);
	return paths;
}

/* As 7.out or 7.1.out, unlike 7.r8.out, whose first rank is 8. */
static bool is_of_rank_0(const char *path)
{
	return !strstr(last_part(path), ".r");
}

/* The part with rank 0 has no file, and other parts of the task have files. */
static bool begins_in_result(json_t *task, const char *stream)
{
	size_t count;
	const char **paths = find_files(task, stream, &count);
	bool begins = count && !strcmp(stream, "out");

	for (size_t i = 0; i < count; i++)
		begins = begins && !is_of_rank_0(paths[i]);
	free(paths);
	return begins && !json_object_get(task, "files_lost");
}

void complete_output_note(json_t *task, struct printed_output *p)
{
	json_t *why = json_object_get(task, "files_lost");

	if (why)
		note_lost(p, "", json_string_value(why));
}

/* False: nothing was printed, and the result has all there is of it. */
static bool print_files(json_t *task, const char *stream, const char *results,
			struct printed_output *p, FILE *to)
{
	size_t before = p->bytes, count;
	const char **paths;

	if (json_object_get(task, "files_lost")) { /* the result has at least the end */
		if (!strcmp(stream, "out"))
			complete_output_note(task, p);
		return false;
	}
	paths = find_files(task, stream, &count);
	for (size_t i = 0; i < count; i++)
		if (!print_file(paths[i], results, p, to))
			break;
	free(paths);
	if (fflush(to))
		die("output cannot be written: %s", strerror(errno));
	return p->bytes > before;
}

void complete_output_print(json_t *task, const char *stream, const char *results,
			   struct printed_output *p, FILE *to, result_text_fn *text, void *arg)
{
	bool begins = begins_in_result(task, stream);

	if (begins || !print_files(task, stream, results, p, to))
		text(arg, task, stream, to);
	if (begins)
		print_files(task, stream, results, p, to);
}

void complete_output_say(const struct printed_output *p)
{
	if (p->lost)
		fprintf(stderr, "pmi2x-dvm: of the output of %zu task%s only the last 4 KiB are kept: %s\n",
			p->lost, plural(p->lost), p->why);
}
