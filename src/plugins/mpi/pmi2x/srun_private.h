/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions that the files of srun's side share. */
#pragma once

#include "slurm_compat.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "launch_env.h"
#include "spawn_srun.h"
#include "srun.h"
#include "srun_library.h"
#include "trace_file.h"

#define COMPONENTS_MAX 128 /* Slurm's own limit of het components */

/* A het component: Slurm's layout of it, and where its ranks start. */
struct component {
	const slurm_step_layout_t *layout;
	char **nodes; /* names, in the layout's order */
	uint32_t nnodes;
	uint32_t first_rank;
};

struct srun {
	const struct srun_library *library;
	struct srun_server *server;
	struct launch_env launch;
	struct spawn_place place;
	char srun_path[PATH_MAX];
	struct component components[COMPONENTS_MAX];
	/* The server's thread reads these two, and components below the count. */
	_Atomic uint32_t ncomponents;
	_Atomic bool aborted; /* killer is there, exit_code holds */
	bool called_abort;    /* by a rank, not by us; set before aborted */
	uint32_t running; /* components that have not ended */
	uint32_t step_id;
	pthread_t killer; /* ends the step after an abort */
	int over;         /* eventfd, written for the killer: the step has ended */
	int exit_code;
	char *cause;      /* the first that the user was told of a failure */
	bool gave_up;     /* ranks have ended for it */
	struct srun_server_host host;
	struct place *places; /* the server's thread: nodes by position */
	uint32_t nplaces;
	uint32_t places_of;   /* how many components they are of */
	struct trace_file *trace; /* NULL: none is wanted. Once srun's server runs,
	                             its thread and prelaunch use it */
	pthread_mutex_t trace_lock;
};

/* ---- srun_host.c ---- */

/* Fill in s->host: what srun's server asks of this process, in the server's thread. */
void srun_host_make(struct srun *s);
