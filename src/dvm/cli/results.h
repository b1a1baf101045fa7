/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm: what has become of the tasks that a command waits for. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "dvm/cli/client.h"
#include "dvm/cli/complete_output.h"
#include "dvm/cli/max_fails.h"
#include "dvm/cli/progress.h"
#include "dvm/cli/results_file.h"

struct results {
	FILE *report;       /* each result as a line of JSON; NULL: nowhere */
	bool quiet;         /* no summary, and no lines about failed tasks */
	size_t submitted, refused, ended, failed;
	size_t unkept;      /* ended, and their results are not kept */
	size_t before, failed_before; /* ended before this command began */
	double *setups;     /* seconds from being placed to being started */
	size_t nsetups, setups_cap;
	double first, last; /* placed, ended: seconds since 1970; 0: none */
	struct progress progress;
	struct max_fails max_fails;
	bool whole;         /* all tasks have been submitted */
	/* Called once when more tasks have failed than may; gave_up then. */
	void (*give_up)(void *arg);
	bool gave_up;
	size_t dropped;     /* tasks cancelled by give_up, which are no failures */
	/*
	 * Finds the task of a number. NULL: the number has not come yet, and the result
	 * waits. After its result the task may be forgotten.
	 */
	const struct sent_task *(*find)(void *arg, json_int_t id);
	void (*forget)(void *arg, json_int_t id);
	void *arg;
	json_t *early;      /* results that wait */
	struct results_file *file; /* results are written there; NULL: nowhere */
	const char *outputs; /* directory for complete output, or NULL */
	size_t longer;      /* tasks with files there */
	bool print;         /* the output of each, too */
	struct printed_output printed; /* also of tasks that are not printed: lost output */
	bool stopping;      /* tasks are cancelled for a signal: no failures */
	size_t done;        /* succeeded, */
	size_t ended_failed; /* failed, and were not cancelled */
	int code;           /* of the last task that failed, or of */
	json_int_t only;    /* this one; 0: of any */
};

void results_begin(struct results *r);
/* True: more tasks have failed than allowed. */
bool results_too_many_failed(const struct results *r);
/* An event of the head: results are counted; others are not of interest here. */
void results_event(struct results *r, json_t *event);
/* The result of one. */
void results_task(struct results *r, json_t *task);
/*
 * Until all that were submitted have ended. False: a signal has come, or the DVM has gone
 * with `ends`.
 */
bool results_collect(struct results *r, struct conn *c, bool ends);
/* Send this request ("wait"), and collect what it names. */
void results_wait_for(struct results *r, struct conn *c, json_t *request);
/*
 * Send this request, and wait for the first end: print the number of that task. The exit
 * status: 0, or 1 when it has failed, or none is left.
 */
int results_wait_any(struct results *r, struct conn *c, json_t *request);
/*
 * Print the summary, and tell the head, if any, that these tasks have been reported. The
 * exit status: 0, or 1 when one has failed, was cancelled or refused, or is not known.
 */
int results_end(struct results *r, struct conn *c);
/* Print where the file of results is, if there is one: the last line of a command. */
void results_say_where(const struct results *r);
