/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm: talking to a head. An error ends the program with a line that says what to
 * do: no function here returns an error.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "dvm/cli/die.h"
#include "dvm/cli/json_values.h"
#include "dvm/common/rundir.h"

#define DVM_NAME_VARIABLE "PMI2X_DVM"     /* which one is meant */
#define DVM_PATH_MAX 4096

/* A DVM has ended: say where what went wrong can be read, if there is anything. */
void dvm_say_log(const char *dir);

/* The directory of this user's DVMs. It exists while one of them does, or after make. */
const char *dvm_base(void);
void dvm_make_base(void);
/* The directory of a DVM. */
void dvm_dir(char out[DVM_PATH_MAX], const char *name);
/*
 * The file by which clients on other nodes find it (remote.h). False: there is no place
 * for it. Its directory may have to be made.
 */
bool dvm_address(char out[DVM_PATH_MAX], const char *name);
/* The name of this job's, or of one of this machine. */
void dvm_default_name(char out[DVM_PATH_MAX]);
/* True: a head listens, here or on another node. */
bool dvm_is_up(const char *name);
/*
 * The name of the DVM that batch joins, to be freed: this job's, or, outside of jobs, one
 * of this machine, with `local` that of no job. Waits while it is starting or ending.
 * NULL: there is none.
 */
char *dvm_joinable(bool local);

struct conn;

/* Connect to a DVM (NULL: the one that is meant), or those of its name; say hello. */
struct conn *conn_open(const char *name);
/* As above, for a command that neither submits nor waits: no DVM stays up for it. */
struct conn *conn_look(const char *name);
const char *conn_name(const struct conn *c);
/* The DVM's answer to hello, as of doc/dvm-internals.md; NULL: it has not come yet. */
json_t *conn_hello(const struct conn *c);
/* Leave it, as of last_client.h. */
void conn_close(struct conn *c);
/* From now on no event is waited for longer; 0: forever. */
void conn_limit(struct conn *c, unsigned seconds);
/* conn_next returns {"ev": "tick"} when nothing has come for this time; 0: it does not. */
void conn_tick(struct conn *c, int ms);
/* After the last event: why there are no more. The head may have closed the connection. */
const char *conn_end(const struct conn *c);
/* The head has ended: name the logs that may say why, if there are any. */
void conn_say_logs(const struct conn *c);
/*
 * The next event, a new reference; NULL: the head has ended, or the time is over. With
 * several DVMs: all have; for one that ends and owes results there is {"ev": "lost"},
 * with "tasks", how many, and "dvm". A signal of interrupt.h is {"ev": "interrupted"},
 * once.
 */
json_t *conn_next(struct conn *c);
/* Events that come while an answer is awaited go to `fn`, which keeps none of them. */
void conn_on_event(struct conn *c, void (*fn)(void *arg, json_t *event), void *arg);
/* Send it, and return the answer. "error" ends the program. */
json_t *conn_ask(struct conn *c, json_t *request);
/* As above, also an "error"; NULL: the DVM has gone. */
json_t *conn_try(struct conn *c, json_t *request);
/* Say which nodes of {"ev": "unreached"} may run ranks, and until when. False: none. */
bool say_unreached(json_t *event);
/* Name of an event. */
const char *event_name(json_t *event);

/*
 * A profile of this process: its directory and environment, under a name that is the
 * same for the same. outputs: the directory for complete output of its tasks; input: their
 * standard input, whose reference is taken over; both may be NULL.
 */
json_t *make_profile(const char *outputs, json_t *input);
