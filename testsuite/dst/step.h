/* SPDX-License-Identifier: BSD-3-Clause */
/* The step of a run: its nodes, its ranks, srun's end, and how all of it ends. */
#pragma once

#include "srun/srun_server.h"
#include "supervisor/supervisor.h"
#include "testsuite/dst/plan.h"

struct step;

struct sim_rank {
	struct step *step;
	uint32_t rank;
	uint32_t slot;
	struct sim_node *node;
	struct process *process; /* NULL: not yet launched */
	unsigned at;             /* step that it is in */
	char fd_text[16];        /* PMI_FD and so on, for its environment */
	char rank_text[16];
	char size_text[16];
	char sync_text[64];      /* PMI2X_SYNC */
	bool pmi1_api;
	bool no_shm, no_slots;
	int pmi_fd;
};

struct sim_node {
	struct step *step;
	uint32_t id;
	struct process *process; /* slurmstepd, with the supervisor of the agent */
	struct process *agent;   /* NULL: not yet started */
	uint64_t agent_killed;   /* when; NEVER: by nobody */
	int setup_fd, host_fd;   /* its descriptors, */
	struct agent_fds fds;    /* ... and the rest of them */
	int registration_fd;
	char sync_name[40];      /* of the socket of pmi2x-sync; empty: there is none */
	int connect_back_fd;     /* slurmd connects to it; -1: not yet made */
	struct pmi_step view;
};

struct step {
	struct plan *plan;
	struct layout *layout;
	struct secret secret;
	struct sim_node nodes[NODES_MAX];
	struct sim_rank ranks[RANKS_MAX];
	struct process *srun;
	uint16_t srun_port;
	bool ending;             /* srun ends it */
	unsigned failing_lookups;
};

/* All processes of the step are there, and begin. */
void step_begin(struct step *s, struct plan *plan);
void step_end(struct step *s);
/* Kill every rank soon, as Slurm does. */
void step_abort(struct step *s, const char *why);
const struct log_hook *step_log(void);
/* Fails the run when an orderly end has left something. */
void check_nothing_left(struct process *p);

/* node.c: the only file that knows how an agent is made and ended. */
void node_begin(struct sim_node *n);
/* rank.c */
void rank_begin(struct sim_rank *r);
/* rank_sync.c: 0 or an error code. */
int rank_use_store(struct sim_rank *r);
/* srun.c */
void srun_begin(struct step *s);
