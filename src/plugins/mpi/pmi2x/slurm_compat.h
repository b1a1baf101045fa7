/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slurm's headers, and what differs between its releases. The only file of the
 * plugin that looks at Slurm's version: those that the README names.
 */
#ifndef PMI2X_SLURM_COMPAT_H
#define PMI2X_SLURM_COMPAT_H

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

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 11, 0)
typedef list_t *slurm_list;
typedef hostlist_t *slurm_hostlist;
#define compat_kill_step(job, step) slurm_kill_job_step(job, step, SIGKILL, 0)
#else
typedef List slurm_list;
typedef hostlist_t slurm_hostlist;
typedef mpi_plugin_client_info_t mpi_step_info_t;
typedef mpi_plugin_task_info_t mpi_task_info_t;
#define compat_kill_step(job, step) slurm_kill_job_step(job, step, SIGKILL)
#endif

/* Slurm's own encryption (tls/s2n), or NULL; 25.05 is the first to have any. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
#define compat_tls_type() \
	(xstrstr(slurm_conf.tls_type, "s2n") ? slurm_conf.tls_type : NULL)
#else
#define compat_tls_type() ((const char *)NULL)
#endif

#endif
