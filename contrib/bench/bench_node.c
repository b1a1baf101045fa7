/* SPDX-License-Identifier: BSD-3-Clause */
/* The place of a rank of pmi2x bench collectives: on its node, and the machine. */
#include "bench_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many tasks node `index` has, of "16(x2),1"; 0 when it does not say. */
static int tasks_of(const char *text, int index)
{
	while (*text) {
		char *end;
		long tasks = strtol(text, &end, 10), nodes = 1;

		if (end == text || tasks <= 0)
			return 0;
		if (end[0] == '(' && end[1] == 'x') {
			nodes = strtol(end + 2, &end, 10);
			end += *end == ')';
		}
		if (index < nodes)
			return tasks;
		index -= nodes;
		if (*end && *end != ',')
			return 0;
		text = *end ? end + 1 : end;
	}
	return 0;
}

static int number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : 0;
}

void bench_place(int *local, int *locals)
{
	const char *tasks = getenv("SLURM_STEP_TASKS_PER_NODE");

	*local = number_of("SLURM_LOCALID");
	*locals = tasks ? tasks_of(tasks, number_of("SLURM_NODEID")) : 0;
	if (*local < 0 || *local >= *locals) {
		*local = 0;
		*locals = 1;
	}
}

void bench_machine(char machine[BENCH_MACHINE_LEN])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (!file || !fgets(machine, BENCH_MACHINE_LEN, file))
		strcpy(machine, "unknown");
	if (file)
		fclose(file);
}
