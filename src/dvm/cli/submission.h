/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm run, submit and batch: the tasks of a command, and what they have in common.
 * Errors end the program, as in client.h; a task that is refused does not.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "dvm/cli/client.h"
#include "dvm/cli/results.h"
#include "dvm/cli/template.h"

#define BATCH 1000 /* tasks in a request */
#define BATCH_BYTES ((size_t)4 << 20) /* of their arguments: then it is sent, too */

struct sent;
struct written_path;

struct submission {
	const char *dvm;
	json_t *task;         /* what all tasks share: ranks, cores, ... */
	json_t *tasks;        /* collected, not yet sent */
	size_t bytes;         /* of their arguments */
	struct written_path *paths; /* files that tasks so far write */
	const char *json, *lines, *array, *report;
	const char *journal, *local, *orphan; /* of batch, for its DVM; */
	bool take_over;                       /* of batch, for its DVM */
	bool wait, quiet, tied;
	void (*no_node)(void); /* of srun: another one takes tasks on nodes of no DVM; or NULL */
	const char *file;     /* file of lines, one task each; NULL: none */
	size_t given;         /* lines of it, or tasks without one, so far */
	uint64_t made;        /* commands with values */
	const char *journal_at; /* NULL: tasks are of no journal of this command's */
	bool follow;            /* of run: tasks that this one spawns, too */
	bool stdin_goes;        /* to the task, or to each */
	json_t *input;          /* standard input of all tasks; NULL: they have none */
	bool again, retry_failed; /* of batch */
	const char *shell;        /* the same; NULL: /bin/sh */
	bool options_anywhere;  /* also behind the first argument, a file */
	bool keeps;             /* specifications of tasks are kept until they have ended */
	struct sent *sent;      /* these */
	uint64_t last;          /* the largest number of them */
	bool named_results;     /* of submit: a file of results is to be opened */
	char *outputs;          /* directory for complete output; NULL: there is none */
	struct results_file written;
	char *commands[BATCH];  /* of tasks, if keeps */
	bool retries[BATCH];    /* the same: it had failed before */
	size_t numbers[BATCH]; /* of tasks: what was given when they came */
	bool full[BATCH];     /* of tasks: the queue had no room */
	bool said_full;
	bool incomplete;      /* the last request said that others follow */
	json_t *profile;      /* NULL: it has been sent */
	char *profile_id;
	char *cwd;            /* of the command */
	struct conn *conn;
	struct results results;
};

/* ---- task_options.c ---- */

/* Read the options of run, submit and batch; optind is the first operand then. */
void task_options_take(struct submission *s, int argc, char **argv);
bool task_options_any_batch(const struct submission *s);
void task_options_refuse_batch(const struct submission *s);

/* ---- output_options.c ---- */

/* A value of --output or --error: checked, and the directories of its name are made. */
void output_option(struct submission *s, const char *path);
void error_option(struct submission *s, const char *path);
/* A value of --chdir. */
void chdir_option(struct submission *s, const char *path);
/*
 * Several tasks: check that each has its own output file, unless --append is given. braces:
 * values replace {} in names.
 */
void output_options_check(const struct submission *s, bool braces);
/*
 * Make the paths of a task absolute. False: an earlier task of the command writes to one of
 * its files, which has been said.
 */
bool task_paths_ok(struct submission *s, json_t *task);

/* ---- submission.c ---- */

/* Open --report, if it is not open. */
void submission_open_report(struct submission *s);
/* Connect to the DVM. */
void submission_begin(struct submission *s);
/* Say that a task, or a line, cannot be; the others are taken. */
void submission_refuse(struct submission *s, size_t number, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Queue a task, whose reference is taken over, and send tasks when there are enough.
 * command: for people.
 */
void submission_add(struct submission *s, json_t *task, const char *command, bool retry);
/* A task that the DVM has. */
void submission_know(struct submission *s, json_int_t id, size_t line, const char *command,
		     bool retry);
/* The numbers of all that have not ended, a new reference. */
json_t *submission_living(const struct submission *s);
/* Send the tasks that were collected: for now no others follow. */
void submission_flush(struct submission *s);
/* No more tasks are to be sent: a signal has come, or too many have failed. */
bool submission_stops(const struct submission *s);
/*
 * An argument list with its values, NULL: there are none. Returns NULL if an argument is no
 * text, which has been said.
 */
json_t *submission_command(struct submission *s, int argc, char **argv,
			   const struct template_values *values);
/* An argument list as one line for people; to be freed. */
char *submission_text(json_t *list);
void submission_add_command(struct submission *s, int argc, char **argv,
			    const char *const *values, size_t count);
/* Open a file of lines; "-" is standard input. */
FILE *submission_open_input(struct submission *s, const char *path);
/* Call `fn` for each line, and close the file. */
void submission_for_lines(struct submission *s, FILE *in, int argc, char **argv,
			  void (*fn)(struct submission *s, char *line, int argc,
				     char **argv));
bool line_is_blank(const char *line);
/* Send the rest, and wait for the tasks with --wait. The exit status. */
int submission_finish(struct submission *s);
