/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The history of a DVM's tasks, as its journal tells it, and figures of that: how many
 * ended how, how soon they were started, and how much of the slots was used. Calls no
 * system function.
 *
 *   history.c        reading
 *   history_count.c  figures
 *   history_most.c   numbers of tasks at once
 */
#pragma once

#include "dvm/core/journal.h"

enum history_state {
	HISTORY_QUEUED,
	HISTORY_RUNNING, /* running, or running when its head was lost */
	HISTORY_DONE,
	HISTORY_FAILED,
	HISTORY_CANCELLED,
	HISTORY_STATES,
};

const char *history_state_name(enum history_state state);

/* Times are of CLOCK_REALTIME, in nanoseconds; 0: it has not happened. */
struct history_task {
	enum history_state state;
	struct journal_submit submit;
	struct journal_start start; /* the last start */
	struct journal_end end;     /* the end */
	double setup_s;             /* as in history_figures, when it has been counted */
};

/* Seconds between two times. */
struct history_times {
	size_t count;
	double mean, median, q3, p99;
};

struct history {
	struct history_task *tasks; /* by ascending number */
	size_t ntasks;
	struct journal_nodes *nodes;
	size_t nnodes;
	struct journal_counts counts; /* of tasks that are not among them */
	size_t heads;
	bool simulated;             /* a head is one of pmi2x sim run */
	uint64_t seen_ns;           /* the last time in a record */
	size_t tasks_cap, nodes_cap;
};

/*
 * Read a journal to its end; journal_open has been called. Its contents point into the
 * data of the journal. 0 or -ENOMEM; in both cases it is to be freed.
 */
int history_read(struct history *h, struct journal_reader *journal);
void history_free(struct history *h);

/* The exit status as a shell says it. */
int history_code(const struct history_task *t);
/* Running time in seconds; 0: the task did not run. */
double history_seconds(const struct history_task *t);

/* The largest numbers of tasks at once: from placed to started, to ended, to told. */
struct history_most {
	size_t setup, running, ending;
};

/* Seconds of heads, in the mean of those of which the journal has the times. */
struct history_stages {
	size_t starts, stops;       /* number of heads */
	double start, stop;         /* from the process to all nodes; from down to the end */
	double longest_start;       /* of one head */
};

struct history_figures {
	size_t states[HISTORY_STATES];
	uint64_t first_ns, last_ns; /* the first was submitted, the last has ended */
	struct history_times start; /* from placed to started */
	/*
	 * To started, from when it was submitted and as many slots as it needs were free,
	 * on whatever nodes.
	 */
	struct history_times setup;
	/*
	 * Slots times seconds, from first to last: that there were while a head lived, and
	 * those that were used by tasks that have ended, in their last try.
	 */
	double there, used;
	double gpus_there, gpus_used; /* the same of GPUs */
	struct history_most most;
	struct history_stages stages;
};

/* Compute the figures of the heads of `n` DVMs together. 0 or -ENOMEM. */
int history_count(struct history *h, size_t n, struct history_figures *out);
/* Compute most: history_most.c. 0 or -ENOMEM. */
int history_count_most(const struct history *h, size_t n, struct history_most *out);
/* True: the task ran, in a try of which all times are known. */
bool history_ran(const struct history_task *t);
