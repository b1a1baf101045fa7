/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of tasks that run on a node: parts.h. */
#include "dvm/zygote/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libutil/decimal.h"

#define TASK "PMI2X_DVM_TASK="
#define INSTANCE "PMI2X_DVM_INSTANCE="

struct part;

struct rank {
	pid_t pid; /* 0: not running */
	struct part *part;
	UT_hash_handle hh;
};

struct part {
	uint32_t number;
	uint64_t task;
	uint32_t instance;
	uint32_t count;
	uint32_t left; /* ranks that have not ended */
	UT_hash_handle hh;
	struct rank ranks[];
};

struct parts {
	struct part *all;
	struct rank *ranks; /* by process */
};

struct parts *parts_create(void)
{
	return calloc(1, sizeof(struct parts));
}

static struct part *find(const struct parts *p, uint32_t number)
{
	struct part *part;

	HASH_FIND(hh, p->all, &number, sizeof(number), part);
	return part;
}

int parts_open(struct parts *p, uint32_t number, uint64_t task, uint32_t instance,
	       uint32_t count)
{
	struct part *part = find(p, number);

	if (part)
		return 0;
	part = calloc(1, sizeof(*part) + count * sizeof(*part->ranks));
	if (!part)
		return -ENOMEM;
	part->number = number;
	part->task = task;
	part->instance = instance;
	part->count = part->left = count;
	HASH_ADD(hh, p->all, number, sizeof(part->number), part);
	if (part->hh.tbl)
		return 0;
	free(part);
	return -ENOMEM;
}

int parts_started(struct parts *p, uint32_t number, uint32_t slot, pid_t pid)
{
	struct part *part = find(p, number);
	struct rank *r = &part->ranks[slot];

	r->pid = pid;
	r->part = part;
	HASH_ADD(hh, p->ranks, pid, sizeof(r->pid), r);
	if (r->hh.tbl)
		return 0;
	r->pid = 0;
	return -ENOMEM;
}

static void drop(struct parts *p, struct part *part)
{
	HASH_DEL(p->all, part);
	free(part);
}

void parts_give_up(struct parts *p, uint32_t number)
{
	struct part *part = find(p, number);

	if (!part)
		return;
	part->left = 0;
	for (uint32_t i = 0; i < part->count; i++)
		part->left += part->ranks[i].pid != 0;
	if (!part->left)
		drop(p, part);
}

static struct rank *find_rank(const struct parts *p, pid_t pid)
{
	struct rank *r;

	HASH_FIND(hh, p->ranks, &pid, sizeof(pid), r);
	return r;
}

bool parts_find(const struct parts *p, pid_t pid, uint32_t *number, uint32_t *slot)
{
	const struct rank *r = find_rank(p, pid);

	if (!r)
		return false;
	*number = r->part->number;
	*slot = (uint32_t)(r - r->part->ranks);
	return true;
}

pid_t parts_vanished(const struct parts *p)
{
	for (const struct rank *r = p->ranks; r; r = r->hh.next)
		if (kill(r->pid, 0) < 0 && errno == ESRCH)
			return r->pid;
	return 0;
}

void parts_ended(struct parts *p, pid_t pid)
{
	struct rank *r = find_rank(p, pid);

	HASH_DEL(p->ranks, r);
	r->pid = 0;
	if (!--r->part->left)
		drop(p, r->part);
}

void parts_signal(struct parts *p, uint32_t number, int signal)
{
	const struct part *part = find(p, number);

	for (uint32_t i = 0; part && i < part->count; i++) {
		pid_t pid = part->ranks[i].pid;

		/* The process may not have made its group yet. */
		if (pid && kill(-pid, signal) < 0 && errno == ESRCH)
			kill(pid, signal);
	}
}

/* ---- the task of a process ---- */

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%lld/%s", (long long)pid, name);
	return fopen(path, "re");
}

static void take(const char *variable, const char *name, uint64_t *value)
{
	size_t len = strlen(name);
	const char *at = variable + len;

	if (!strncmp(variable, name, len))
		(void)decimal_take(&at, UINT64_MAX, value);
}

/* False: not in its environment. */
static bool find_task(pid_t pid, uint64_t *task, uint64_t *instance)
{
	FILE *file = open_proc(pid, "environ");
	char *variable = NULL;
	size_t size = 0;

	*task = *instance = UINT64_MAX;
	while (file && getdelim(&variable, &size, '\0', file) > 0) {
		take(variable, TASK, task);
		take(variable, INSTANCE, instance);
	}
	free(variable);
	if (file)
		fclose(file);
	return *task != UINT64_MAX && *instance != UINT64_MAX;
}

/*
 * Start of the process, in ticks of the kernel: the 22nd field of proc(5). 0: no such
 * process.
 */
static uint64_t started(pid_t pid)
{
	FILE *file = open_proc(pid, "stat");
	char line[1024], *end;
	uint64_t ticks = 0;

	if (file && fgets(line, sizeof(line), file) && (end = strrchr(line, ')')))
		sscanf(end, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
		       &ticks);
	if (file)
		fclose(file);
	return ticks;
}

static bool task_runs(const struct parts *p, uint64_t task, uint64_t instance)
{
	for (const struct part *part = p->all; part; part = part->hh.next)
		if (part->task == task && part->instance == instance)
			return true;
	return false;
}

static bool any_as_old(const struct parts *p, uint64_t ticks)
{
	for (const struct rank *r = p->ranks; r; r = r->hh.next)
		if (started(r->pid) <= ticks)
			return true;
	return false;
}

bool parts_may_run(void *parts, pid_t pid)
{
	const struct parts *p = parts;
	uint64_t task, instance;

	if (find_rank(p, pid))
		return true;
	if (find_task(pid, &task, &instance))
		return task_runs(p, task, instance);
	return any_as_old(p, started(pid));
}
