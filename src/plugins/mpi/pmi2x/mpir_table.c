/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tasks that have been started: srun writes their pids for debuggers into the table of
 * the MPIR process acquisition interface. A program that starts steps through Slurm's
 * library has no such table.
 */
#include "mpir_table.h"

#include <dlfcn.h>
#include <stddef.h>

/* MPIR_PROCDESC, as that interface lays it down. */
struct mpir_procdesc {
	char *host_name;
	char *executable_name;
	int pid;
};

/* How many there are; 0: srun does not say. */
static uint32_t tasks(const struct mpir_procdesc **out)
{
	struct mpir_procdesc **table = dlsym(RTLD_DEFAULT, "MPIR_proctable");
	const int *size = dlsym(RTLD_DEFAULT, "MPIR_proctable_size");

	if (!table || !size || !*table || *size < 0)
		return 0;
	*out = *table;
	return (uint32_t)*size;
}

/* Written by a thread of srun when slurmstepd answers. */
static bool is_started(const struct mpir_procdesc *task)
{
	return __atomic_load_n(&task->pid, __ATOMIC_RELAXED) > 0;
}

bool task_is_started(uint32_t task)
{
	const struct mpir_procdesc *table;

	return task < tasks(&table) && is_started(&table[task]);
}

bool all_tasks_are_started(void)
{
	const struct mpir_procdesc *table;
	uint32_t count = tasks(&table);

	for (uint32_t i = 0; i < count; i++)
		if (!is_started(&table[i]))
			return false;
	return true;
}
