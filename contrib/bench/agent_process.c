/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for "PROGRAM UID GID JOB.STEP NODE ..." among all processes. */
#include "agent_process.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 1024
#define STEP_ARGUMENT 3
#define NODE_ARGUMENT 4

/* The arguments of a command line of `len` bytes are ended by NULs. */
static const char *argument(const char *line, size_t len, int number)
{
	const char *at = line;

	while (number-- > 0 && at < line + len)
		at += strlen(at) + 1;
	return at < line + len ? at : "";
}

static bool is_one_of(const char *pid, const char *program, const char *jobid,
		      const char *node)
{
	char path[300], line[LINE_MAX_BYTES + 1];
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	len = fread(line, 1, LINE_MAX_BYTES, file);
	fclose(file);
	line[len] = '\0';
	return !strcmp(argument(line, len, 0), program) &&
	       !strcmp(argument(line, len, STEP_ARGUMENT), jobid) &&
	       (!node || !strcmp(argument(line, len, NODE_ARGUMENT), node));
}

static unsigned find(const char *program, const char *jobid, const char *node, pid_t *pids,
		     unsigned room)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	unsigned n = 0;

	while (proc && n < room && (entry = readdir(proc)))
		if (atoi(entry->d_name) > 0 &&
		    is_one_of(entry->d_name, program, jobid, node))
			pids[n++] = atoi(entry->d_name);
	if (proc)
		closedir(proc);
	return n;
}

pid_t agent_process(const char *program, const char *jobid, const char *node)
{
	pid_t pid;

	return find(program, jobid, node, &pid, 1) ? pid : 0;
}

unsigned agent_processes(const char *program, const char *jobid, pid_t *pids, unsigned room)
{
	return find(program, jobid, NULL, pids, room);
}
