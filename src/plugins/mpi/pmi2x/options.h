/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The plugin's options as one table, without Slurm: names, variables, allowed
 * values, and what is said about a wrong one. Described in mpi_pmi2x.conf(5).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libutil/log.h"

#define CONF_PATH_MAX 1024   /* bytes, NUL included */
#define CONF_NETWORK_MAX 64  /* the same */
#define OPTION_TEXT_MAX CONF_PATH_MAX /* of any value, NUL included */
#define OPTION_SHOWN_MAX 64  /* bytes of a wrong value in a message */

/* When a node's topology is made a file for its ranks; see mpi_pmi2x.conf(5). */
enum conf_topology {
	CONF_TOPOLOGY_OFF,
	CONF_TOPOLOGY_ASKED,
	CONF_TOPOLOGY_AGENT,
	CONF_TOPOLOGY_VARIABLES,
};

/* When PMIx is offered to ranks, and when its server is started. */
enum conf_pmix {
	CONF_PMIX_NO,
	CONF_PMIX_AUTO,  /* with the tasks of a program that needs it, or the first client */
	CONF_PMIX_EARLY, /* with the first task; tasks wait for it */
};

/* Where PMIx clients find the server's data. */
enum conf_pmix_gds { CONF_PMIX_GDS_AUTO, CONF_PMIX_GDS_HASH };

/* Variables and services of tasks for PyTorch and JAX; see mpi_pmi2x.conf(5). */
enum conf_torch {
	CONF_TORCH_OFF,
	CONF_TORCH_ENV,   /* variables and ports */
	CONF_TORCH_STORE, /* and a TCPStore on the first node */
	CONF_TORCH_TREE,  /* and a TCPStore on each node, for its tasks */
};

struct conf {
	uint32_t tree_width; /* TREE_WIDTH_AUTO: chosen by size */
	uint32_t handshake_s;
	uint32_t connect_s;
	uint32_t drain_s;
	uint32_t dead_peer_s;
	uint32_t region_mib; /* 0: no shared memory */
	uint32_t buffer_mib;
	uint32_t stall_s;      /* 0: no report */
	uint32_t collective_s; /* 0: no timeout */
	uint32_t kill_on_failure; /* 0: off, 1: on */
	uint32_t topology; /* enum conf_topology */
	uint32_t pmix;     /* enum conf_pmix */
	uint32_t pmix_gds; /* enum conf_pmix_gds */
	uint32_t pmix_collect; /* enum pmixd_collect of helpers/pmixd/pmixd.h */
	uint32_t torch;    /* enum conf_torch */
	uint32_t lend;     /* 1: a job may set PMI2X_LEND */
	uint16_t port_first; /* 0: chosen by conf_ports */
	uint16_t port_last;
	char network[CONF_NETWORK_MAX]; /* "": that of NodeAddr */
	char trace_dir[CONF_PATH_MAX]; /* "": no trace */
	char pmix_library[CONF_PATH_MAX]; /* "": looked for */
};

/* By enum pmixd_collect; pmi2x-pmixd takes the same. */
extern const char *const options_collect_words[];

/* Options are numbered from 0; NULL: there is none of this number. */
const char *option_key(size_t i);
/* The variable by which a job overrides it, or NULL. */
const char *option_variable(size_t i);
/* "use X; ...": what is allowed, as the line about a wrong value says it. */
void option_allowed(size_t i, char out[OPTION_TEXT_MAX]);

void options_defaults(struct conf *c);

/*
 * Set an option from text. A wrong value is one error line for `log` (may be
 * NULL) that says `where` it is from, the value, the option, what is allowed and
 * what is used; the value in use then stays.
 */
void option_set(struct conf *c, size_t i, const char *where, const char *text,
		const struct log_hook *log);

/*
 * The value that a job's environment gives an option that has a variable, on a node,
 * where *c has the site's values. A job can only lower options that a site sets for its
 * own sake (how long its nodes are held, how much of their memory, no PMIx): a larger
 * value is one error line for `log` (may be NULL) that says both, and the
 * site's stays. A wrong value is left out without a line: srun has complained.
 */
void option_override(struct conf *c, size_t i, const char *text,
		     const struct log_hook *log);

/*
 * The options that all nodes of a step must have set alike, with the values in use, as
 * words "option=value": peers/settings.h. A default value is "(default)".
 */
void options_agreed(const struct conf *c, char out[OPTION_TEXT_MAX]);

/* The value in use as text that option_set takes; "": chosen by default. */
void option_text(const struct conf *c, size_t i, char out[OPTION_TEXT_MAX]);
