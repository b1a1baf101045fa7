/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the public functions of PMI-1, PMI-2 and the extension share. A
 * function that is api_... enters the session and leaves it. All give 0 or an error
 * (conn.h), also -ENXIO and -ECHILD (session_enter) and -EINVAL for arguments that are
 * missing, which the callers translate into codes of their own protocol. Any thread.
 */
#pragma once

#include <errno.h>

#include "session.h"
#include "spawn_draft.h"
#include "value.h"

/*
 * The result of `call` inside the session `s`, which is entered for it and left;
 * -EINVAL unless the arguments are `valid`.
 */
#define SESSION_CALL(valid, s, call) ({ \
	int rc_ = -EINVAL; \
	struct session *s = (valid) ? session_enter(&rc_) : NULL; \
	s ? session_leave(s, (call)) : rc_; })

/* The PMI-2 or PMI-1 error code of a result; 0 stays 0. */
int pmi2_code(int rc);
int pmi1_code(int rc);

/* A number of the job. */
typedef int api_number(struct job *job, int *out);
api_number job_rank, job_size;
int api_get_number(api_number *read, int *out);

/* The name of the job; -ENOBUFS when it does not fit. */
int api_get_name(char *to, int size);
int api_fence(void);

int api_publish(const char *name, const char *port);
int api_unpublish(const char *name);
/* -ENOENT: nobody has published it; -ENOBUFS: the port is cut. */
int api_lookup(const char *name, char *port, int size);

/*
 * Look a key of this job up without entering the session: no lock, no system call.
 * `jobid` NULL: this job. 1 and where the value is, 0: there is no such key; -ENXIO:
 * ask the other way.
 */
int api_find(const char *jobid, const char *key, const char **value,
	     size_t *len);

/* Start what the caller describes. See spawn_run. */
int api_spawn(const struct spawn_source *from, char jobid[], int jobid_size,
	      int errors[]);

/*
 * Numbers separated by commas: how many were stored, at most `max`. -EPROTO:
 * the text is something else.
 */
int parse_ints(const char *text, int array[], int max);

/* Tell the server, if there is one, and exit with `status`. */
_Noreturn void abort_job(bool world, int status, const char *text);
