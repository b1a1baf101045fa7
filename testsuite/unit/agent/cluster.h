/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step of several agents in one process, for the tests of agents: one rank a
 * node, nodes n0, n1, ... on 127.0.0.1 in a tree of width 2 (of five: 0: 1 3, 1: 2, 3: 4).
 * Ranks are sockets over which the test speaks PMI-1 by hand.
 */
#pragma once

#include <pthread.h>

#include "agent/setup.h"
#include "srun/srun_server.h"
#include "supervisor/supervisor.h"
#include "unit.h"

#define CLUSTER_NODES_MAX 8
#define CLUSTER_PORTS 100 /* of a cluster, for its agents */

struct cluster {
	uint32_t nodes;
	uint16_t port_first; /* of CLUSTER_PORTS, and as many beyond them */
	int held;            /* a lock that keeps other tests off these ports */
	struct layout *layout;
	uint16_t slurm_port;         /* of slurmd on every node; 0: elsewhere */
	struct secret secret;
	struct pmi_step steps[CLUSTER_NODES_MAX];
	struct agent_options options; /* of all; may be changed before starts */
	struct supervisor *agents[CLUSTER_NODES_MAX];
	int pmi[CLUSTER_NODES_MAX];  /* the ranks' ends; -1: none */
	struct log_hook log;
	pthread_mutex_t lock;        /* of what the agents' threads write */
	pthread_cond_t changed;
	char text[65536];            /* the log, ERROR and INFO lines, but for */
	bool unfinished;             /* a line that an agent has left by its drain_ms */
	unsigned tells;
	int tell_error;              /* of all of them, when not 0, */
	unsigned tells_refused;      /* after this number of them */
	bool ipv6;                   /* ::1 in the place of 127.0.0.1 */
	bool nowhere;                /* node_address leads elsewhere */
	bool names;                  /* addresses have to be looked up */
	bool stuck[CLUSTER_NODES_MAX]; /* the resolver does not answer there */
	bool lookups_fail;
	unsigned lookups;            /* lookups that have begun */
	char killed[512];            /* why kill_step was called */
	/* In place of the agents, unless NULL: struct supervisor_program.run. */
	int (*run)(int setup_fd, int host_fd, const struct agent_fds *fds);
	bool exits;                  /* there is an answer to how ranks exit, */
	unsigned exits_after;        /* after being asked this many times: */
	struct pmi_exit exit;        /* this */
	bool job_is_over;
	unsigned job_asked;
	unsigned exits_asked;
};

/*
 * With ports that no other cluster of this machine has: tests may run side by side.
 * The agents use the first CLUSTER_PORTS of them unless a test says otherwise.
 */
void cluster_open(struct cluster *c, uint32_t nodes);
/* Stop what still runs, check that nothing is left. */
void cluster_close(struct cluster *c);

/* A cluster that ends with its test. */
struct cluster *cluster_new(uint32_t nodes);
#define CLUSTER_TEST(name, nodes) TEST_ON(name, struct cluster *c, cluster_new(nodes))

/*
 * srun's server of this step, to which agents that are started later connect. For the caller
 * to stop, after cluster_close.
 */
struct srun_server *cluster_start_srun(struct cluster *c,
				       const struct srun_server_host *host);
/* Ranks can register, and nobody serves them before supervisor_run. */
struct supervisor *cluster_prepare(struct cluster *c, uint32_t node);
void cluster_start(struct cluster *c, uint32_t node);
void cluster_start_all(struct cluster *c);
void cluster_stop(struct cluster *c, uint32_t node);
/* All ranks, and then all agents. */
void cluster_stop_all(struct cluster *c);
/* True in the threads of an agent. */
extern __thread bool cluster_in_agent;
/* struct supervisor_program.run of the agents: in a thread of this process. */
int cluster_run_agent(int setup_fd, int host_fd, const struct agent_fds *fds);
/* Break all connections between agents, without a goodbye. */
void cluster_cut_links(const struct cluster *c);

/* A rank in this process registers. */
void rank_register(struct cluster *c, uint32_t node);
/* As above, and the rank starts PMI. */
void rank_init(struct cluster *c, uint32_t node);
/* As above, for all ranks; and a barrier of all. */
void cluster_init_all(struct cluster *c);
void cluster_barrier(struct cluster *c);
/* Start all agents; all ranks start PMI, and leave a barrier: all links are up. */
void cluster_start_pmi(struct cluster *c);
void rank_close(struct cluster *c, uint32_t node);
/* A line of PMI-1, without its newline. */
void rank_say(struct cluster *c, uint32_t node, const char *line);
/* The next line from the server, or "(end)"; valid until the next call. */
const char *rank_hear(struct cluster *c, uint32_t node);
/* The rank's next response contains this text. */
void rank_expect(struct cluster *c, uint32_t node, const char *part);

/*
 * Wait until this is true. It is called with the lock held, and again whenever
 * `changed` is signalled; after long the test has failed.
 */
void cluster_await(struct cluster *c, bool (*there)(void *arg), void *arg);
/* Wait until the log of ERROR and INFO lines has this text. */
void cluster_expect_log(struct cluster *c, const char *part);
/* The port that `node` takes when nobody else has it. */
uint16_t cluster_port(struct cluster *c, uint32_t node);
