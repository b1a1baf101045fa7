/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The step manager's side of srun --async: the secret and the name of a step. */
#include "slurm_compat.h"

#include <stdlib.h>
#include <string.h>

#include "launch_env.h"
#include "slurm_log.h"
#include "step_manager.h"

static int describe(struct launch_env *l, const mpi_step_info_t *info)
{
	const uint32_t job = launch_leader(info->step_id.job_id, info->het_job_id);
	int rc;

	l->jobid = launch_jobid(job, info->step_id.step_id);
	rc = l->jobid ? secret_create(&l->secret) : -ENOMEM;
	rc = rc ? rc : port_seed_create(&l->port_seed);
	return rc ? rc : run_create(&l->run);
}

int step_manager_prelaunch(const mpi_step_info_t *info, char ***env)
{
	struct launch_env launch = { .srun_port = 0 };
	int rc = describe(&launch, info);

	rc = rc ? rc : launch_env_write(&launch, env);
	launch_env_free(&launch);
	if (rc)
		log_error(&slurm_log, "cannot prepare a step of srun --async: %s",
			  strerror(-rc));
	return rc;
}
