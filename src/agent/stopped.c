/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out from /proc and the cgroup file systems whether a process is stopped. */
#include "agent/stopped.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "libio/proc_stat.h"

#define TEXT_MAX 4096

/*
 * How a hierarchy of cgroups shows a frozen group. `line` is one of /proc/PID/cgroup, such
 * as "4:freezer:/slurm/job_7".
 */
static const struct freezer {
	const char *line; /* as it begins, after the number of a hierarchy */
	const char *dir, *file, *frozen;
} freezers[] = {
	{ ":freezer:", "/sys/fs/cgroup/freezer", "freezer.state", "FROZEN" },
	{ "0::", "/sys/fs/cgroup", "cgroup.events", "frozen 1" },
	{ "0::", "/sys/fs/cgroup/unified", "cgroup.events", "frozen 1" },
};

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
	struct proc_stat now;

	return proc_stat_read((uint64_t)pid, &now) && (now.state == 'T' || now.state == 't');
}

static bool is_frozen_by(const struct freezer *f, const char *lines)
{
	char path[PATH_MAX], text[TEXT_MAX];
	const char *cgroup = strstr(lines, f->line);

	if (!cgroup)
		return false;
	cgroup += strlen(f->line);
	if (snprintf(path, sizeof(path), "%s%.*s/%s", f->dir,
		     (int)strcspn(cgroup, "\n"), cgroup,
		     f->file) >= (int)sizeof(path))
		return false;
	return read_text(path, text) && strstr(text, f->frozen);
}

/* A process that is ending has given up its memory before its descriptors. */
bool process_lives(pid_t pid, char *name, size_t size)
{
	char path[32], text[TEXT_MAX];
	unsigned long pages = 0;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	snprintf(name, size, "%s", read_text(path, text) ? text : "");
	name[strcspn(name, "\n")] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	return read_text(path, text) && sscanf(text, "%lu", &pages) == 1 && pages > 0;
}

bool process_is_stopped(pid_t pid)
{
	char path[32], text[TEXT_MAX];

	if (has_signal_stopped(pid))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (!read_text(path, text))
		return false;
	for (size_t i = 0; i < sizeof(freezers) / sizeof(freezers[0]); i++)
		if (is_frozen_by(&freezers[i], text))
			return true;
	return false;
}
