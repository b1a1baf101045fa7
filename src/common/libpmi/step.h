/* SPDX-License-Identifier: BSD-3-Clause */
/* A step as one of its nodes sees it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/layout.h"

struct budget;

/* The host owns everything; read-only. */
struct pmi_step {
	const char *jobid;          /* "<job>.<step>", also the KVS name */
	const struct layout *layout;
	uint32_t position;          /* of this node */
	uint32_t tree_width;        /* TREE_WIDTH_AUTO: chosen by size */
	uint32_t piece;             /* bytes after which they cut a message; 0:
	                               COLL_PIECE */
	struct budget *budget;      /* counts the engine's memory; NULL: no limit */
	const char *mapping;        /* PMI_process_mapping; NULL: left out */
	uint32_t universe_size;     /* processes the allocation can hold */
	const uint32_t *app_sizes;  /* of several applications: consecutive ranks of
	                               each, in rank order; NULL: appnum is -1,
	                               or 0 in a spawned step */
	const uint32_t *app_numbers; /* to which application each of these belongs, which
	                               may have several; NULL: 0, 1, 2 ... */
	uint32_t napps;
	bool spawned;
	const char *spawner_jobid;  /* NULL unless spawned */
	const char *reserved_ports; /* mpi_reserved_ports, or NULL */
	/* PMI_netinfo_of_task, or NULL: asked for by few, so made when it is. */
	const char *(*netinfo)(void *arg);
	void *netinfo_arg;
	uint64_t hash_seed;         /* random, of this agent alone: ranks choose names
	                               of node attributes */
	const void *preput;         /* KVS records (libshm/records.h) put by the
	                               spawner: generation 0 on every node */
	size_t preput_len;
	bool debugged;
	const char *build;          /* version text of this build */
	const char *const *node_names; /* by node id, for messages */
};
