/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which tasks have been started: srun notes their pids for debuggers, in the table
 * of the MPIR process acquisition interface. A program that starts steps
 * through Slurm's library has none.
 */
#include "started.h"

#include <dlfcn.h>
#include <stddef.h>

/* MPIR_PROCDESC, as that interface lays it down. */
struct mpir_procdesc {
	char *host_name;
	char *executable_name;
	int pid;
};

bool task_is_started(uint32_t task)
{
	struct mpir_procdesc **table = dlsym(RTLD_DEFAULT, "MPIR_proctable");
	const int *size = dlsym(RTLD_DEFAULT, "MPIR_proctable_size");

	if (!table || !size || !*table || *size < 0 || task >= (uint32_t)*size)
		return false;
	/* Written by a thread of srun when slurmstepd answers. */
	return __atomic_load_n(&(*table)[task].pid, __ATOMIC_RELAXED) > 0;
}
