/* SPDX-License-Identifier: BSD-3-Clause */
/* What the public functions share: entering a session, codes, copying out. */
#ifndef PMI2X_API_H
#define PMI2X_API_H

#include "session.h"

/* The PMI-2 or PMI-1 error code of a result (conn.h); 0 stays 0. */
int pmi2_code(int rc);
int pmi1_code(int rc);

/* session_leave and the code. */
int pmi2_leave(struct session *s, int rc);
int pmi1_leave(struct session *s, int rc);

/* session_enter; NULL and the code in *code. */
struct session *pmi2_enter(int *code);
struct session *pmi1_enter(int *code);

/*
 * Copy text into `size` (> 0) bytes, NUL included, cut where needed. True when
 * nothing was cut.
 */
bool copy_text(char *to, size_t size, const char *from, size_t len);

/* The name of the job. 0, -ENOBUFS when it does not fit, or an error. */
int copy_jobid(struct session *s, char *to, int size);

/*
 * Numbers separated by commas: how many were stored, at most `max`. -EPROTO:
 * the text is something else.
 */
int parse_ints(const char *text, int array[], int max);

/* Tell the server, if there is one, and exit with `status`. */
_Noreturn void abort_job(bool world, int status, const char *text);

#endif
