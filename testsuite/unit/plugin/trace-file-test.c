/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trace file of a step: what comes into it, and what cannot be made. */
#include "unit.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "trace_file.h"

struct place {
	char dir[64];
	char said[256]; /* the last line for the log */
	struct log_hook log;
};

static void on_log(void *arg, enum log_level level, const char *text)
{
	struct place *p = arg;

	snprintf(p->said, sizeof(p->said), "%s", text);
}

static int open_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->dir, "/tmp/pmi2x-trace-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->log = (struct log_hook){ on_log, p };
	*state = p;
	return 0;
}

static void path_in(const struct place *p, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/pmi2x-trace.5.0.jsonl", p->dir);
}

static int close_place(void **state)
{
	struct place *p = *state;
	char path[PATH_MAX];

	path_in(p, path);
	unlink(path);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static const char *content(const struct place *p)
{
	static char text[4096];
	char path[PATH_MAX];
	FILE *file;

	path_in(p, path);
	file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

TEST_WITH(records_are_lines, open_place, close_place)
{
	struct place *p = *state;
	struct trace_file *t = trace_file_create(p->dir, "5.0", &p->log);

	assert_non_null(t);
	trace_file_expect(t, 1);
	trace_file_expect(t, 1); /* another het component */
	assert_true(trace_file_missing(t));
	trace_file_add(t, 1, "{\"b\"}", 5);
	trace_file_add(t, 1, "{\"c\"}", 5); /* twice */
	trace_file_add(t, 2, "{\"d\"}", 5); /* there is no such node */
	trace_file_add(t, 0, "{\n}", 3);    /* no line */
	trace_file_add(t, 0, "", 0);
	assert_true(trace_file_missing(t));
	trace_file_add(t, 0, "{\"a\"}", 5);
	assert_false(trace_file_missing(t));
	trace_file_close(t);
	assert_string_equal(p->said, "");
	assert_non_null(strstr(content(p), "\"step\":\"5.0\""));
	assert_non_null(strstr(content(p), ",\"start\":"));
	assert_null(strstr(content(p), ",\"start\":0}"));
	assert_non_null(strstr(content(p), "}\n{\"b\"}\n{\"a\"}\n{\"end\""));
	assert_null(strstr(content(p), "\"c\""));
	assert_null(strstr(content(p), "\"d\""));
}

TEST_WITH(a_missing_node_is_said, open_place, close_place)
{
	struct place *p = *state;
	struct trace_file *t = trace_file_create(p->dir, "5.0", &p->log);

	trace_file_expect(t, 3);
	trace_file_add(t, 0, "{}", 2);
	trace_file_close(t);
	assert_non_null(strstr(p->said, "2 of 3 nodes"));
	assert_non_null(strstr(content(p), "\"nodes\":3,\"received\":1"));
}

TEST_WITH(existing_trace_files_stay, open_place, close_place)
{
	struct place *p = *state;
	char path[PATH_MAX];

	path_in(p, path);
	assert_int_equal(symlink("/dev/null/elsewhere", path), 0);
	assert_null(trace_file_create(p->dir, "5.0", &p->log));
	assert_non_null(strstr(p->said, "move that file away"));
}

TEST_WITH(a_bad_directory_is_said, open_place, close_place)
{
	struct place *p = *state;

	assert_null(trace_file_create("here", "5.0", &p->log));
	assert_non_null(strstr(p->said, "not absolute"));
	assert_null(trace_file_create("/nonexistent", "5.0", &p->log));
	assert_non_null(strstr(p->said, "No such file"));
	trace_file_expect(NULL, 1);
	trace_file_add(NULL, 0, "{}", 2);
	assert_false(trace_file_missing(NULL));
	trace_file_close(NULL);
}
