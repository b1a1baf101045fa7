/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job of a process: what init has agreed on with the process manager, and the
 * ways to it. Filled in by one thread in init; after that only what is atomic or
 * has a lock changes.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "libutil/buf.h"
#include "rank_trace.h"

struct conn;
struct region;
struct singleton;
struct slots_client;
struct wire_ops;

/*
 * A batch of records is sent before it passes this, so that it fits into one
 * message even if every byte must be doubled there.
 */
#define BATCH_MAX ((size_t)400 << 10)

/* Settings from the environment; read once, at init. */
struct settings {
	bool pmi1_wire; /* PMI2X_PMI1_WIRE: use PMI-1 */
	bool disable;   /* PMI2X_DISABLE: do not offer the extension */
	bool no_region; /* PMI2X_NOSHM: do not map the results region */
	bool no_slots;  /* PMI2X_NOSLOTS: enter collectives over the socket */
	bool debug;     /* PMI2X_DEBUG: print refused requests */
	bool slurm;     /* PMI_JOBID is set, as Slurm's plugins do */
};

/*
 * Records put since the last fence (extension). All records in it are acknowledged: it is
 * emptied when a fence with all of it has been entered. Where values can be fetched, each
 * record is shown to the agent before that (show_put).
 */
struct batch {
	pthread_mutex_t lock;
	struct buf records;
	int lost; /* why records that were put have not arrived: no fence can be
	             entered any more; or 0 */
};

/* Places in the region that nobody reads any more, as uint64_t. */
struct done {
	pthread_mutex_t lock;
	struct buf offsets;
};

struct job {
	struct settings settings;
	const struct wire_ops *ops;
	struct conn *conn;   /* NULL: singleton */
	int rank;
	int size;
	int appnum;          /* -1: unknown */
	bool spawned;
	_Atomic(char *) name; /* asked for when first needed; never changes */

	int extension;       /* version agreed on; 0: plain PMI */
	int nodes;           /* of the step; 0: the server did not tell */
	bool groups;         /* the server knows barriers of a group */
	bool fetches;        /* a value can be fetched of a rank */
	char *server_build;  /* NULL: unknown */
	struct region *region; /* NULL: results come over the socket */
	size_t region_size;
	struct slots_client *slots; /* NULL: collectives use the socket */
	pthread_mutex_t entering; /* the agent takes the entries of both transports
	                             in one order */

	struct rank_trace trace;
	struct batch batch;
	struct done done;
	struct singleton *alone; /* puts of a singleton */
	atomic_uint gathers;     /* started; names the keys of the fallback */
	atomic_uint rings;       /* made of put, fence and get */
	atomic_uint kvs_created; /* by PMI_KVS_Create */

	/*
	 * Barriers of a group that have ended, and how many of them had when a
	 * fence that has ended was entered. The values of their members are in the region
	 * only after a fence.
	 */
	atomic_uint groups_done;
	atomic_uint groups_fenced;
};

void job_init(struct job *job);
/* Frees what is the job's own memory; who made the rest ends it before. */
void job_destroy(struct job *job);
