/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Symbols that Slurm looks up in mpi_pmi2x.so. Holds the plugin's only mutable state:
 * one pointer, made when the plugin is loaded. srun, slurmstepd, slurmd and slurmctld
 * load it; in the last two it only answers for mpi.conf.
 */
#include "slurm_compat.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "conf.h"
#include "slurm_log.h"
#include "srun.h"
#include "step_manager.h"
#include "stepd.h"

const char plugin_name[] = "mpi pmi2x plugin";
const char plugin_type[] = "mpi/pmi2x";
/* "pm2": far from Slurm's own numbers, which grow from 101 upwards. */
const uint32_t plugin_id = 0x706d32;
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number
/* The mark of Slurm's version, for pmi2x-probe --nodes, which has the file only. */
static const char slurm_mark[] __attribute__((used)) =
	"pmi2x slurm " TEXT(SLURM_VERSION_NUMBER);

struct plugin {
	struct conf conf;
	struct stepd *stepd;    /* in slurmstepd, from prefork on */
	struct srun *srun;      /* in srun, while a step runs */
	pthread_mutex_t lock;   /* of srun: het components start in threads */
};

static struct plugin *plugin;

/* Slurm's prototypes for what it looks up are in no header. */
extern int init(void);
extern int fini(void);
extern int mpi_p_slurmstepd_prefork(const stepd_step_rec_t *step, char ***env);
extern int mpi_p_slurmstepd_task(const mpi_task_info_t *task, char ***env);
extern mpi_plugin_client_state_t *
mpi_p_client_prelaunch(const mpi_step_info_t *step, char ***env);
extern int mpi_p_client_fini(mpi_plugin_client_state_t *state);
extern void mpi_p_conf_options(s_p_options_t **options, int *count);
extern void mpi_p_conf_set(s_p_hashtbl_t *table);
extern s_p_hashtbl_t *mpi_p_conf_get(void);
extern slurm_list mpi_p_conf_get_printable(void);

/* In the logs that an administrator reads, once in the life of a daemon. */
static void warn_of_plain_links(void)
{
	const char *tls = compat_tls_type();

	if (tls && (running_in_slurmctld() || running_in_slurmd()))
		log_error(&slurm_log,
			  "TLSType=%s does not cover the connections of pmi2x between nodes and to srun: they are authenticated, not encrypted; see doc/threat-model.md of pmi2x",
			  tls);
}

int init(void)
{
	plugin = calloc(1, sizeof(*plugin));
	if (!plugin)
		return SLURM_ERROR;
	warn_of_plain_links();
	options_defaults(&plugin->conf);
	pthread_mutex_init(&plugin->lock, NULL);
	return SLURM_SUCCESS;
}

int fini(void)
{
	if (!plugin)
		return SLURM_SUCCESS;
	stepd_stop(plugin->stepd);
	plugin->stepd = NULL;
	pthread_mutex_destroy(&plugin->lock);
	free(plugin);
	plugin = NULL;
	return SLURM_SUCCESS;
}

static bool has_ranks(const stepd_step_rec_t *step)
{
	return !step->batch && step->step_id.step_id != SLURM_BATCH_SCRIPT &&
		step->step_id.step_id != SLURM_EXTERN_CONT &&
		step->step_id.step_id != SLURM_INTERACTIVE_STEP;
}

/*
 * After each fork, in the process that has forked: slurmstepd, but also a task
 * that forks for a SPANK hook or a prolog before its exec, and the clone of
 * slurmstepd, sharing its memory, in which newer releases run SPANK hooks.
 * Gone when this is unloaded.
 */
static void after_fork(void)
{
	if (plugin && plugin->stepd)
		stepd_forked(plugin->stepd);
}

int mpi_p_slurmstepd_prefork(const stepd_step_rec_t *step, char ***env)
{
	if (!has_ranks(step))
		return SLURM_SUCCESS;
	if (pthread_atfork(NULL, after_fork, NULL))
		return SLURM_ERROR;
	plugin->stepd = stepd_start(step, env, &plugin->conf);
	return plugin->stepd ? SLURM_SUCCESS : SLURM_ERROR;
}

int mpi_p_slurmstepd_task(const mpi_task_info_t *task, char ***env)
{
	int rc = plugin->stepd ? stepd_task(plugin->stepd, task, env) : 0;

	errno = -rc; /* slurmstepd adds its text to its own line */
	return rc ? SLURM_ERROR : SLURM_SUCCESS;
}

mpi_plugin_client_state_t *mpi_p_client_prelaunch(const mpi_step_info_t *step,
						  char ***env)
{
	struct srun *state;

	if (running_in_slurmstepd())
		return step_manager_prelaunch(step, env) ? NULL : (void *)plugin;
	pthread_mutex_lock(&plugin->lock);
	state = srun_enter(&plugin->srun, step, env);
	pthread_mutex_unlock(&plugin->lock);
	return state;
}

int mpi_p_client_fini(mpi_plugin_client_state_t *state)
{
	struct srun *last;

	pthread_mutex_lock(&plugin->lock);
	last = srun_leave(&plugin->srun);
	pthread_mutex_unlock(&plugin->lock);
	return srun_end(last);
}

void mpi_p_conf_options(s_p_options_t **options, int *count)
{
	conf_options(options, count);
}

void mpi_p_conf_set(s_p_hashtbl_t *table)
{
	conf_set(&plugin->conf, table);
	if (running_in_slurmctld() || running_in_slurmd())
		conf_warn_unknown();
}

s_p_hashtbl_t *mpi_p_conf_get(void)
{
	return conf_table(&plugin->conf);
}

slurm_list mpi_p_conf_get_printable(void)
{
	return conf_printable(&plugin->conf);
}
