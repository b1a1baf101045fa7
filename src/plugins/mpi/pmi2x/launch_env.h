/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values that srun passes to the agents of its step, as variables in the launch
 * message: the secret and small constants. Agents take them out again before tasks see
 * their environment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libio/secret.h"

#define LAUNCH_APPS_MAX 1024          /* commands of one spawn */
/*
 * Bytes of records: two digits each, and the name, make one word of an environment,
 * which Linux limits to 128 KiB.
 */
#define LAUNCH_PREPUT_MAX (((128u << 10) - sizeof(LAUNCH_PREPUT "=")) / 2)

/* How a spawn hands its parent's end of a socket pair to the new srun. */
#define LAUNCH_SPAWN_FD "PMI2X_SPAWN_FD"

/* The value of an explicit srun --kill-on-bad-exit: it wins over options. */
enum launch_kill { LAUNCH_KILL_UNSAID, LAUNCH_KILL_NO, LAUNCH_KILL_YES };

/* The kind of the step's program, as srun sees it. */
enum launch_program {
	LAUNCH_PROGRAM_OTHER,
	LAUNCH_PROGRAM_MPI,  /* linked with an MPI library */
	LAUNCH_PROGRAM_PMIX, /* linked with an MPI library that uses PMIx only */
	LAUNCH_PROGRAM_WRAPPER, /* another one, with an argument that is LAUNCH_PROGRAM_MPI */
};

struct launch_env {
	struct secret secret;
	uint64_t port_seed;     /* see seeded_port */
	uint32_t run;           /* tells a step from another of its number: see
	                           connect_back_socket_open */
	uint32_t srun_port;
	uint32_t universe_size; /* 0: unknown */
	uint32_t trace;         /* 1: record time stamps */
	uint32_t kill;          /* the step when a collective fails: enum launch_kill */
	uint32_t no_kill;       /* 1: srun --no-kill */
	uint32_t program;       /* enum launch_program */
	char *jobid;            /* "<job>.<step>", as srun says */
	char *spawner_jobid;    /* NULL unless spawned */
	uint32_t *app_sizes;    /* NULL unless spawned by several commands */
	uint32_t napps;
	void *preput;           /* KVS records; NULL: none */
	size_t preput_len;
};

/*
 * The job by whose number all components of a step are known: `het_job`, as Slurm's
 * records have it, unless that is 0 or NO_VAL.
 */
uint32_t launch_leader(uint32_t job, uint32_t het_job);

/* "<job>.<step>", malloc'ed; NULL: no memory. */
char *launch_jobid(uint32_t job, uint32_t step);
/* True: two numbers and nothing else, which may stand in a log. */
bool launch_is_jobid(const char *text);

/* Slurm's env_array_overwrite_fmt clears 256 KiB at each call; this does not. */
void launch_set_number(char ***env, const char *name, uint64_t number);

/* Write the variables into *env. 0 or -ENOMEM. */
int launch_env_write(const struct launch_env *l, char ***env);

/*
 * Read the variables and remove them from *env. 0, -ENOENT (there is no
 * secret: the step was not prepared by this plugin in srun), -EINVAL or -ENOMEM;
 * *what then names the variable. *l can be freed in any case.
 */
int launch_env_take(struct launch_env *l, char ***env, const char **what);

/* Overwrite the secret in `env`, whose last entry is NULL. NULL is allowed. */
void launch_env_wipe(char **env);

/*
 * srun's half of the same for a spawned step: what its parent put into the
 * environment of this process. Errors as above. Without LAUNCH_SPAWN_FD it was
 * not spawned, and the variables are left from elsewhere: nothing is read.
 */
int launch_env_inherit(struct launch_env *l, const char **what);

void launch_env_free(struct launch_env *l); /* forgets the secret */

/*
 * CPUs in the form of SLURM_JOB_CPUS_PER_NODE: "4,2(x3)" is 10. 0 when it has
 * another form or is too large.
 */
uint32_t launch_cpus(const char *text);

/*
 * Processes that an allocation can hold, by SLURM_JOB_CPUS_PER_NODE and
 * SLURM_CPUS_PER_TASK, which may be NULL; 0: they do not say.
 */
uint32_t launch_universe(const char *cpus, const char *per_task);

/* KVS records as text for the spawned srun; malloc'ed; NULL: no memory. */
char *launch_preput_text(const void *records, size_t len);

/* The variables for a spawned srun. */
#define LAUNCH_SPAWNER_JOBID "PMI2X_SPAWNER_JOBID"
#define LAUNCH_APPS "PMI2X_APPS"
#define LAUNCH_PREPUT "PMI2X_PREPUT"
