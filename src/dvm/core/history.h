/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The history of a DVM's tasks, as its journal tells it, and figures of that: how many
 * ended how, how soon they were started, and how much of the slots was used. Calls no
 * system function.
 */
#ifndef PMI2X_DVM_HISTORY_H
#define PMI2X_DVM_HISTORY_H

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
};

/* Seconds between two times. */
struct history_times {
	size_t count;
	double median, p99;
};

struct history {
	struct history_task *tasks; /* by ascending number */
	size_t ntasks;
	struct journal_nodes *nodes;
	size_t nnodes;
	struct journal_counts counts; /* of tasks that are not among them */
	size_t heads;
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
};

/* Compute the figures. 0 or -ENOMEM. */
int history_count(const struct history *h, struct history_figures *out);

#endif
