/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slurm's headers, and what differs between its releases. Only this file and
 * slurm_calls.h look at Slurm's version: those that the README names.
 */
#pragma once

/* libutil/log.h names its levels like Slurm does: Slurm's get a prefix. */
#define LOG_LEVEL_ERROR SLURM_LOG_LEVEL_ERROR
#define LOG_LEVEL_INFO SLURM_LOG_LEVEL_INFO
#define LOG_LEVEL_DEBUG SLURM_LOG_LEVEL_DEBUG

/* Slurm's headers do not compile cleanly with our warnings. */
#pragma GCC system_header

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>

#include "src/common/slurm_xlator.h"

#include "src/common/env.h"
#include "src/common/hostlist.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/parse_config.h"
#include "src/common/proc_args.h"
#include "src/common/read_config.h"
#include "src/common/slurm_opt.h"
#include "src/common/slurm_protocol_api.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/slurmd/slurmstepd/slurmstepd_job.h"

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#include "src/interfaces/mpi.h"
#else
#include "src/common/slurm_mpi.h"
#endif

#undef LOG_LEVEL_ERROR
#undef LOG_LEVEL_INFO
#undef LOG_LEVEL_DEBUG

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 2, 0)
typedef mpi_plugin_client_info_t mpi_step_info_t;
typedef mpi_plugin_task_info_t mpi_task_info_t;
typedef void *compat_appended;
#else
typedef void compat_appended;
#endif

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
typedef hostlist_t *slurm_hostlist;
#else
typedef hostlist_t slurm_hostlist;
#endif

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
typedef list_t *slurm_list;
#else
typedef List slurm_list;
#endif

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
typedef const char *compat_conf_name;
typedef slurm_step_id_t compat_job;
#else
typedef char *compat_conf_name;
typedef uint32_t compat_job;
#endif

/* The signal that Slurm's own MPI plugins send after an abort: SIG_TERM_KILL is SIGCONT,
 * SIGTERM and, after KillWait, SIGKILL; but only with SIGKILL does the controller tell
 * srun that the step has ended, whose node may be dead. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define COMPAT_ABORT_SIGNAL SIG_TERM_KILL
#else
#define COMPAT_ABORT_SIGNAL SIGKILL
#endif

/* All components of a heterogeneous step. Not 0, and errno is set, when the
 * controller refuses or is not there. */
static inline int compat_signal_step(uint32_t job, uint32_t step, uint16_t signal)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define COMPAT_KILL_ARGUMENTS slurm_step_id_t *, uint16_t, uint16_t
	slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;

	id.job_id = job;
	id.step_id = step;
	return slurm_kill_job_step(&id, signal, 0);
#elif SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define COMPAT_KILL_ARGUMENTS uint32_t, uint32_t, uint16_t, uint16_t
	return slurm_kill_job_step(job, step, signal, 0);
#else
#define COMPAT_KILL_ARGUMENTS uint32_t, uint32_t, uint16_t
	return slurm_kill_job_step(job, step, signal);
#endif
}

#define compat_kill_step(job, step) compat_signal_step(job, step, SIGKILL)

/* 0; or not, and errno is set. */
static inline int compat_load_job(job_info_msg_t **out, uint32_t job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
	slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;

	id.job_id = job;
	return (slurm_load_job)(out, id, 0);
#else
	return slurm_load_job(out, job, 0);
#endif
}

/*
 * A step of srun --async, which 26.05 has: srun ends at once, and a daemon of Slurm launches
 * the step. Only such steps do their output themselves.
 */
#ifdef LAUNCH_LOCAL_IO
#define compat_is_async(step) (((step)->flags & LAUNCH_LOCAL_IO) != 0)
#else
#define compat_is_async(step) ((void)(step), false)
#endif

/* srun --kill-on-bad-exit, as the launch message says from 26.05 on. */
#ifdef LAUNCH_KILL_ON_BAD_EXIT
#define compat_kills_on_bad_exit(step) (((step)->flags & LAUNCH_KILL_ON_BAD_EXIT) != 0)
#else
#define compat_kills_on_bad_exit(step) ((void)(step), false)
#endif

/* The program and the arguments that srun is to start. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
#define compat_argv(opt) ((opt)->argv)
#else
#define compat_argv(opt) ((opt)->srun_opt ? (opt)->srun_opt->argv : NULL)
#endif

/* Slurm's own encryption (tls/s2n), or NULL; 25.05 is the first to have any. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
#define compat_tls_type() \
	(xstrstr(slurm_conf.tls_type, "s2n") ? slurm_conf.tls_type : NULL)
#else
#define compat_tls_type() ((const char *)NULL)
#endif
