/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of this head's process, as other heads compare it (dvm/core/owner.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/head/durable_journal.h"
#include "libio/proc_stat.h"

static void read_line(const char *path, char *out, size_t size)
{
	FILE *in = fopen(path, "re");

	out[0] = '\0';
	if (in && fgets(out, (int)size, in))
		out[strcspn(out, "\n")] = '\0';
	if (in)
		fclose(in);
}

/*
 * When the process was started, in ticks since the machine was; 0: there is none, or none
 * that still does anything.
 */
static uint64_t born(uint64_t pid)
{
	struct proc_stat now;

	if (!proc_stat_read(pid, &now) || now.state == 'Z' || now.state == 'X')
		return 0;
	return now.started;
}

/* Processes with the same text see one another by their numbers. */
static void where(char out[OWNER_TEXT_MAX])
{
	char boot[64], space[48] = "";

	read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	if (readlink("/proc/self/ns/pid", space, sizeof(space) - 1) < 0)
		space[0] = '\0';
	snprintf(out, OWNER_TEXT_MAX, "%s %s", boot, space);
}

static uint64_t number_of(const char *variable)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : 0;
}

void head_owner_self(struct owner *o)
{
	const char *cluster = getenv("SLURM_CLUSTER_NAME");

	*o = (struct owner){
		.pid = (uint64_t)getpid(),
		.born = born((uint64_t)getpid()),
		.job = number_of("SLURM_JOB_ID"),
		.restarts = number_of("SLURM_RESTART_COUNT"),
	};
	if (gethostname(o->host, sizeof(o->host)) < 0)
		snprintf(o->host, sizeof(o->host), "?");
	o->host[sizeof(o->host) - 1] = '\0';
	where(o->where);
	snprintf(o->cluster, sizeof(o->cluster), "%s", cluster ? cluster : "");
}

bool head_owner_lives(void *arg, const struct owner *o)
{
	uint64_t now = born(o->pid);

	return now && now == o->born;
}

void head_owner_name(const struct owner *o, char *out, size_t size)
{
	if (!o->epoch || !o->host[0])
		snprintf(out, size, "another DVM");
	else if (o->job)
		snprintf(out, size, "another DVM, its head process %llu on %s in job %llu,",
			 (unsigned long long)o->pid, o->host,
			 (unsigned long long)o->job);
	else
		snprintf(out, size, "another DVM, its head process %llu on %s,",
			 (unsigned long long)o->pid, o->host);
}
