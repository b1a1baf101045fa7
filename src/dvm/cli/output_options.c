/* SPDX-License-Identifier: BSD-3-Clause */
/* The options --output, --error and --append of tasks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/cli/submission.h"
#include "dvm/core/dvm_msg.h"
#include "dvm/core/output_path.h"

static char *absolute(const char *path)
{
	char cwd[DVM_TEXT_MAX], *out;

	if (*path == '/')
		out = strdup(path);
	else if (!getcwd(cwd, sizeof(cwd)) || asprintf(&out, "%s/%s", cwd, path) < 0)
		die("the working directory has no name: %s", strerror(errno));
	if (!out)
		die("out of memory");
	return out;
}

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

/* Is it there, or may it be on the nodes, where tasks make what is missing? */
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
	char *whole = absolute(path);

	check_name(option, path);
	json_object_set_new(s->task, key, user_text(option, whole));
	make_directories(option, whole);
	free(whole);
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

static void check_key(const struct submission *s, bool braces, const char *option,
		      const char *key)
{
	const char *path = json_string_value(json_object_get(s->task, key));

	if (path && !output_path_has(path, 't') && !(braces && strchr(path, '{')))
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
