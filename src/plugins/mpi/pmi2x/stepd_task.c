/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slurmstepd's child that becomes a rank: its connection and its environment. */
#include "slurm_compat.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "libio/clock.h"
#include "libio/registration.h"
#include "libpmi/extension.h"
#include "slurm_log.h"
#include "stepd_private.h"
#include "supervisor/process_time.h"
#include "topology_file.h"

#define SYNC_ENV_MAX 128
#define TOPOLOGY_WAIT_MS 2000 /* for the topology; then ranks do without */
#define TORCH_WAIT_MS 120000 /* for the first node, longer than for a lost neighbour */
#define PMIX_WAIT_MS 20000 /* for its server; a client then waits by itself */

/* The slot of a rank of this node; UINT32_MAX when it is none. */
static uint32_t slot_of(const struct stepd *s, uint32_t rank)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(s->nodes.layout,
						s->step.position, &count);

	for (uint32_t i = 0; i < count; i++)
		if (ranks[i] == rank)
			return i;
	return UINT32_MAX;
}

/* The socket, the rank and the step, for pmi2x-sync. */
static void set_sync_env(const struct stepd *s, uint32_t rank, char ***env)
{
	const char *name = supervisor_sync_name(s->supervisor);
	char value[SYNC_ENV_MAX];

	snprintf(value, sizeof(value), "%s:%u:%s", name ? name : "", rank, s->jobid);
	if (name)
		env_array_overwrite(env, "PMI2X_SYNC", value);
	else
		unsetenvp(*env, "PMI2X_SYNC"); /* of an outer step */
}

static void set_task_env(const struct stepd *s, uint32_t rank, int fd,
			 char ***env)
{
	launch_set_number(env, "PMI_FD", (uint64_t)fd);
	launch_set_number(env, "PMI_RANK", rank);
	launch_set_number(env, "PMI_SIZE", layout_ranks(s->nodes.layout));
	env_array_overwrite(env, "PMI_JOBID", s->jobid);
	if (s->pmix.dir)
		launch_set_number(env, "PMIX_RANK", rank);
	if (s->launch.trace)
		env_array_overwrite(env, EXT_ENV_RANK_TRACE, "1");
	else
		unsetenvp(*env, EXT_ENV_RANK_TRACE); /* of an outer step */
	if (s->step.spawned)
		env_array_overwrite(env, "PMI_SPAWNED", "1");
	else
		unsetenvp(*env, "PMI_SPAWNED"); /* of an outer step */
}

/* With the times of this process, if there is a trace. */
static int register_rank(const struct stepd *s, uint32_t slot, int *fd)
{
	int reg = supervisor_registration_fd(s->supervisor);
	struct registration_times times;

	if (!s->launch.trace)
		return registration_of_rank(reg, slot, fd);
	times.forked = process_start();
	times.left = clock_ns(CLOCK_MONOTONIC);
	return registration_of_timed_rank(reg, slot, &times, fd);
}

/* Only with Pmi2xTopology=variables there is something to wait for. */
static void set_topology(const struct stepd *s, char ***env)
{
	const char *path = supervisor_topology_file(s->supervisor, TOPOLOGY_WAIT_MS);

	if (path)
		topology_env_set(env, path);
}

/* Each rank of a program that needs PMIx would come up alone. */
static bool misses_pmix(const struct stepd *s)
{
	return s->pmix.lacks && s->launch.program == LAUNCH_PROGRAM_PMIX &&
	       layout_ranks(s->nodes.layout) > 1;
}

/* Reports messages that have not reached the user before there were tasks. */
static void tell_user(const struct stepd *s, const mpi_task_info_t *task)
{
	if (task->gtaskid == 0 && s->notes[0])
		log_error(&slurm_log, "%s", s->notes);
	if (task->ltaskid == 0 && misses_pmix(s))
		log_error(&slurm_log, "PMIx is not offered: %s", s->pmix.lacks);
}

/* Slurm ends no step whose tasks have not begun: here they see that it is to end. */
static int wait_for_pmix(const struct stepd *s, char ***env)
{
	if (!s->pmix.tasks_wait)
		return 0;
	if (!supervisor_pmix_wait(s->supervisor, PMIX_WAIT_MS))
		pmix_offer_set_late(&s->pmix, env);
	return supervisor_pmix_refused(s->supervisor) ? -ENOTCONN : 0;
}

/* Without the ports of the first node the rank does not begin. */
static int set_torch(const struct stepd *s, uint32_t rank, uint32_t slot, char ***env)
{
	uint16_t ports[TORCH_PORTS];

	memcpy(ports, s->torch.ports, sizeof(ports));
	if (torch_offer_waits(&s->torch, s->step.position) &&
	    !supervisor_torch_ports(s->supervisor, TORCH_WAIT_MS, ports)) {
		log_error(&slurm_log, "rank %u does not begin: the first node has not told the ports of PMI2X_TORCH",
			  rank);
		return -ETIMEDOUT;
	}
	torch_offer_set_env(&s->torch, ports, rank, slot, s->step.position, env);
	return 0;
}

int stepd_task(const struct stepd *s, const mpi_task_info_t *task, char ***env)
{
	uint32_t slot;
	int fd, rc;

	if (!s->supervisor) {
		if (task->ltaskid == 0) /* once a node is enough */
			log_error(&slurm_log, "%s",
				  s->failure ? s->failure : "no memory");
		return -ENOTCONN;
	}
	slot = slot_of(s, task->gtaskid);
	rc = slot == UINT32_MAX ? -EINVAL : register_rank(s, slot, &fd);
	if (rc) {
		log_error(&slurm_log,
			  "rank %u cannot reach the agent of its node: %s",
			  task->gtaskid, strerror(-rc));
		return rc;
	}
	supervisor_rank_comes(s->supervisor);
	tell_user(s, task);
	fd = registration_takes_place(supervisor_registration_fd(s->supervisor), fd);
	set_topology(s, env);
	rc = wait_for_pmix(s, env);
	if (rc)
		return rc;
	set_task_env(s, task->gtaskid, fd, env);
	set_sync_env(s, task->gtaskid, env);
	rc = set_torch(s, task->gtaskid, slot, env);
	if (rc)
		return rc;
	rc = lend_offer_set_env(&s->lend, task->gtaskid, slot, s->step.position, env);
	if (rc) {
		log_error(&slurm_log, "rank %u cannot be given what PMI2X_LEND needs: %s",
			  task->gtaskid, strerror(-rc));
		return rc;
	}
	/*
	 * Slurm does not end what a killed slurmstepd leaves, and the step is
	 * over for it. slurmstepd forks in its main thread, which stays.
	 */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return 0;
}
