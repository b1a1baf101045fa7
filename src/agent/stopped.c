/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out from /proc and the cgroup file systems whether a process is stopped. */
#include "agent/stopped.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 4096

static bool read_text(const char *path, char text[TEXT_MAX])
{
	FILE *file = fopen(path, "re");
	size_t n;

	if (!file)
		return false;
	n = fread(text, 1, TEXT_MAX - 1, file);
	fclose(file);
	text[n] = '\0';
	return n > 0;
}

static bool has_signal_stopped(pid_t pid)
{
	char path[32], text[TEXT_MAX];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (!read_text(path, text))
		return false;
	at = strrchr(text, ')');
	return at && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
}

/* Are these words in a file of a cgroup? */
static bool cgroup_says(const char *hierarchy, const char *cgroup,
			const char *file, const char *words)
{
	char path[PATH_MAX], text[TEXT_MAX];

	if (snprintf(path, sizeof(path), "/sys/fs/cgroup%s%s/%s", hierarchy,
		     cgroup, file) >= (int)sizeof(path))
		return false;
	return read_text(path, text) && strstr(text, words);
}

/* A line of /proc/PID/cgroup: "4:freezer:/slurm/job_7", of version 2 "0::/..." */
static bool is_frozen_by(char *line)
{
	char *controllers = strchr(line, ':');
	char *cgroup = controllers ? strchr(++controllers, ':') : NULL;

	if (!cgroup)
		return false;
	*cgroup++ = '\0';
	if (!strcmp(controllers, "freezer"))
		return cgroup_says("/freezer", cgroup, "freezer.state",
				   "FROZEN");
	return !*controllers &&
	       (cgroup_says("", cgroup, "cgroup.events", "frozen 1") ||
		cgroup_says("/unified", cgroup, "cgroup.events", "frozen 1"));
}

static bool is_frozen(pid_t pid)
{
	char path[32], text[TEXT_MAX], *rest, *line;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (!read_text(path, text))
		return false;
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (is_frozen_by(line))
			return true;
	}
	return false;
}

bool process_is_stopped(pid_t pid)
{
	return has_signal_stopped(pid) || is_frozen(pid);
}
