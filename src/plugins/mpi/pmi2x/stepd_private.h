/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Definitions that the files of slurmstepd's side share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "address.h"
#include "launch_env.h"
#include "lend_offer.h"
#include "libpmi/step.h"
#include "libutil/log.h"
#include "options.h"
#include "pmix_offer.h"
#include "socket_name.h"
#include "step_apps.h"
#include "step_layout.h"
#include "stepd.h"
#include "supervisor/supervisor.h"
#include "torch_offer.h"

struct stepd {
	struct supervisor *supervisor;
	const stepd_step_rec_t *record; /* Slurm's; lives as long as this process */
	pid_t pid;    /* of slurmstepd: what it forks has a copy of this */
	bool running; /* its thread has been started */
	struct pmi_step step;
	struct step_layout nodes;
	struct launch_env launch;
	struct step_apps apps;
	struct connect_back_socket connect_back;
	char *jobid; /* "<job>.<step>", from Slurm's record of the step */
	char *reserved_ports;
	int program; /* the agent's file, as it was when the step began; -1 */
	char *topology; /* path of the node's topology as a file; NULL: never */
	int topology_program; /* the file of pmi2x-topology; -1 */
	struct pmix_step pmix_step;
	struct pmix_offer pmix;
	struct torch_offer torch;
	struct lend_offer lend;
	uint32_t job; /* the job whose step is killed when srun cannot be reached */
	uint32_t step_id;
	int64_t prefork_ns; /* with a trace: when prefork began */
	char settings[OPTION_TEXT_MAX]; /* settings that all nodes must share */
	char notes[LOG_LINE_MAX]; /* for the user, about the job's options */
	char *failure; /* why there is no agent; NULL: there is one */
};
