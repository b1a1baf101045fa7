/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of tasks: the options --output, --error, --append and --chdir. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define uthash_fatal(what) die("%s", what)
#include <uthash.h>

#include "dvm/cli/submission.h"
#include "dvm/core/dvm_msg.h"
#include "dvm/core/output_path.h"

/* A file that a task writes. */
struct written_path {
	size_t task;
	UT_hash_handle hh;
	char path[];
};

/* A typing error would be a wrong name of a file. */
static void check_name(const char *option, const char *path)
{
	const char *unknown = output_path_unknown(path);

	if (!*path)
		die_usage("%s: the name of the file is empty", option);
	if (unknown)
		die_usage("%s: unknown \"%.2s\": %%t is the task, %%r the rank, %%i the number of earlier starts, %%%% a per cent sign",
			  option, unknown);
}

/*
 * True: the path exists here, or may exist on the nodes, where tasks make missing
 * directories.
 */
static bool may_be_there(const char *path)
{
	struct stat st;

	if (errno == EEXIST && !stat(path, &st) && !S_ISDIR(st.st_mode))
		errno = ENOTDIR;
	return errno == EEXIST || errno == EROFS || errno == EACCES;
}

/* The directories before the first of them that has a task's own name. */
static void make_directories(const char *option, char *path)
{
	size_t fixed = strcspn(path, "%{");

	for (size_t i = 1; i < fixed && path[i]; i++) {
		if (path[i] != '/')
			continue;
		path[i] = '\0';
		if (mkdir(path, 0777) < 0 && !may_be_there(path))
			die("%s: cannot make %s: %s", option, path, strerror(errno));
		path[i] = '/';
	}
}

static void set_file(struct submission *s, const char *option, const char *key,
		     const char *path)
{
	char *copy = strdup(path);

	if (!copy)
		die("out of memory");
	check_name(option, path);
	json_object_set_new(s->task, key, user_text(option, path));
	make_directories(option, copy);
	free(copy);
}

void output_option(struct submission *s, const char *path)
{
	set_file(s, "--output", "path", path);
	json_object_set_new(s->task, "output", json_string("file"));
}

void error_option(struct submission *s, const char *path)
{
	set_file(s, "--error", "error", path);
}

void chdir_option(struct submission *s, const char *path)
{
	if (!*path)
		die_usage("--chdir: the name of the directory is empty");
	json_object_set_new(s->task, "cwd", user_text("--chdir", path));
}

/* ---- all tasks of a command ---- */

static bool is_null_device(const char *path)
{
	return !strcmp(path, "/dev/null");
}

static void check_key(const struct submission *s, bool braces, const char *option,
		      const char *key)
{
	const char *path = json_string_value(json_object_get(s->task, key));

	if (path && !output_path_has(path, 't') && !(braces && strchr(path, '{')) &&
	    !is_null_device(path))
		die_usage("%s: all tasks would write to one file: give its name %s, or add --append",
			  option, braces ? "%t or {}" : "%t");
}

void output_options_check(const struct submission *s, bool braces)
{
	if (json_is_true(json_object_get(s->task, "append")))
		return;
	check_key(s, braces, "--output", "path");
	check_key(s, braces, "--error", "error");
}

/* ---- one task, whose values are filled in ---- */

/* The user means paths below the directory of the command, with or without --chdir. */
static void make_absolute(const struct submission *s, json_t *task, const char *key)
{
	json_t *value = json_object_get(task, key);
	const char *path = json_string_value(value);

	if (path && *path && *path != '/' && strlen(path) == json_string_length(value))
		json_object_set_new(task, key, json_sprintf("%s/%s", s->cwd, path));
}

/* The number of another task that writes this file, or 0. */
static size_t find_writer(struct submission *s, const char *path)
{
	size_t number = s->json ? s->given : s->made;
	struct written_path *w;

	HASH_FIND_STR(s->paths, path, w);
	if (w)
		return w->task == number ? 0 : w->task;
	w = malloc(sizeof(*w) + strlen(path) + 1);
	if (!w)
		die("out of memory");
	w->task = number;
	strcpy(w->path, path);
	HASH_ADD_STR(s->paths, path, w);
	return 0;
}

static bool is_own(struct submission *s, json_t *task, const char *key)
{
	const char *path = json_string_value(json_object_get(task, key));
	size_t other;

	if (!path || output_path_has(path, 't') || is_null_device(path))
		return true;
	other = find_writer(s, path);
	if (other)
		submission_refuse(s, s->given, "%s: %s %zu writes %s, too: add %%t to the name, or give --append",
				  key, s->json ? "line" : "task", other, path);
	return !other;
}

bool task_paths_ok(struct submission *s, json_t *task)
{
	make_absolute(s, task, "path");
	make_absolute(s, task, "error");
	make_absolute(s, task, "cwd");
	return json_is_true(json_object_get(task, "append")) ||
	       (is_own(s, task, "path") && is_own(s, task, "error"));
}
