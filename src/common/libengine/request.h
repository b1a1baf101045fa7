/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of ranks: the commands, and what they are answered. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libengine/pmi_server.h"
#include "libpmi/control.h"
#include "libpmi/message.h"
#include "libpmi/spawn.h"

#define THRID_MAX 64            /* bytes of a thread id, NUL included */
#define ANSWER_TEXT_MAX 640     /* bytes of an error text, NUL included */
/* Unanswered requests of a rank to srun and for node attributes. */
#define RANK_WAITS_MAX 1024

/* A job attribute that PMI-1 asks for as a key. */
#define MAPPING_KEY "PMI_process_mapping"
/* A key of PMI-1 for an attribute of the node. */
#define TOPOLOGY_KEY "PMI_hwloc_xmlfile"

struct buf;
struct rank_session;
struct rank_request;

/* A row of a protocol's table of commands. */
struct command {
	const char *name;
	const char *response;
	unsigned states;     /* IN(...) of the states that allow it */
	void (*handle)(struct rank_session *ss, const struct rank_request *rq,
		       const struct pmi_message *m);
	const char *failure; /* name of an error response; NULL: response */
	bool extension;      /* only after the extension was agreed on */
	bool tagged;         /* PMI-1 1.2: the response has a tag */
	bool starts;         /* of PMI-1, but the first of a PMI-2 program, too */
};

/* A row: what every command has, then what few have, by name. */
#define COMMAND(name_, response_, states_, ...) \
	{.name = name_, .response = response_, .states = states_, \
	 .handle = __VA_ARGS__}

/* The part of a request that an answer needs, also a later one. */
struct rank_request {
	const struct command *command;
	enum pmi_protocol protocol;
	char thrid[THRID_MAX]; /* "" when there was none */
	uint32_t ticket; /* over 0: came through the slot, answered there */
	uint32_t cell;   /* of the slot */
	int32_t tag;     /* of a barrier's group; 0: it has none */
};

/* ---- rank_args.c ---- */

/* A key or value is in `m`, with a length in 1..max or 0..max; else answers. */
const struct pmi_field *rank_key(struct rank_session *ss,
				 const struct rank_request *rq,
				 const struct pmi_message *m,
				 const char *name, size_t max);
const struct pmi_field *rank_value(struct rank_session *ss,
				   const struct rank_request *rq,
				   const struct pmi_message *m,
				   const char *name, size_t max);
/*
 * Count one more request that waits. False: the rank has RANK_WAITS_MAX, and this one got
 * an error.
 */
bool rank_may_wait(struct rank_session *ss, const struct rank_request *rq);

/* ---- rank_pmi1.c, rank_pmi2.c: the tables ---- */

const struct command *pmi1_command(const char *name);
const struct command *pmi2_command(const char *name);

/* ---- answer.c ---- */

/* Begin a response; the caller adds fields to the writer, then ends it. */
struct pmi_writer *answer_begin(struct rank_session *ss,
				const struct rank_request *rq, int rc);
void answer_end(struct rank_session *ss, const struct rank_request *rq);
/* The descriptors (NULL: none) travel with the first byte, in order. */
void answer_end_fds(struct rank_session *ss, const struct rank_request *rq,
		    const struct passed_fds *fds);
void answer_ok(struct rank_session *ss, const struct rank_request *rq);
/* The value that was asked for; NULL: there is none (PMI-2 only). */
void answer_found(struct rank_session *ss, const struct rank_request *rq,
		  const char *value, size_t len);
/* A gather has ended and lies there. */
void answer_gathered(struct rank_session *ss, const struct rank_request *rq,
		     uint64_t offset, uint64_t len);
/* A ring has ended. */
void answer_ring(struct rank_session *ss, const struct rank_request *rq,
		 const struct coll_ring_result *result);
void answer_error(struct rank_session *ss, const struct rank_request *rq,
		  int rc,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* The PMI code of a negative errno, and what to say about it. */
int answer_rc(int error);
const char *answer_text(int error);

/* ---- attrs.c ---- */

void attrs_free(struct pmi_server *s);
void attrs_put(struct rank_session *ss, const struct rank_request *rq,
	       const struct pmi_field *key, const struct pmi_field *value);
void attrs_get(struct rank_session *ss, const struct rank_request *rq,
	       const struct pmi_field *key, bool wait);
/* A session has ended: its own waits are dropped, hopeless ones answered. */
void attrs_drop(struct rank_session *ss);
void attrs_fail_hopeless(struct pmi_server *s);
/* A line about a get that has waited for `seconds`, if there is one. */
void attrs_tell_wait(const struct pmi_server *s, unsigned seconds,
		     char text[PMI_WAIT_TEXT_MAX]);
/* All that wait fail. */
void attrs_expire(struct pmi_server *s, const char *why);
/* Write the value of a job attribute; false when there is no such. */
bool attrs_job(const struct rank_session *ss, const char *key, struct buf *out);

/* ---- topology.c ---- */

/* A get of TOPOLOGY_KEY is answered, now or later: true. False: it is another key. */
bool topology_get(struct rank_session *ss, const struct rank_request *rq,
		  const struct pmi_field *key);
/* The host is asked for it: true; false: it is known already, or there is none. */
bool topology_want(struct pmi_server *s);
void topology_drop(struct rank_session *ss);
/* See pmi_server_topology. */
void topology_known(struct pmi_server *s, const char *path);

/* ---- requests.c ---- */

/* The handlers of these commands in both protocols. */
void requests_publish(struct rank_session *ss, const struct rank_request *rq,
		      const struct pmi_message *m);
void requests_unpublish(struct rank_session *ss, const struct rank_request *rq,
			const struct pmi_message *m);
void requests_lookup(struct rank_session *ss, const struct rank_request *rq,
		     const struct pmi_message *m);
void requests_spawn(struct rank_session *ss, const struct rank_request *rq,
		    const struct spawn_request *spawn);
/* srun's answer to a request of a PMIx client, or why there will be none. */
typedef void (*request_answered)(struct pmi_server *s, enum control_type type,
				 uint64_t id, const struct control_msg *reply);
/*
 * A request of a PMIx client, NAMES or SPAWN, which is answered by `answered`. 0 or a
 * negative errno: that it will not be.
 */
int requests_pmix(struct rank_session *ss, enum control_type type, uint64_t id,
		  const void *body, size_t len, request_answered answered);
/* The rank aborts: alone, or with it the whole step. */
void requests_abort(struct rank_session *ss, bool step, int code, const char *text);
/* The first rank of a spawned step has started; or why it never will. */
void requests_ready(struct pmi_server *s, const char *why_not);
/*
 * The spawner of the step, or the step that this rank has spawned, may wait for the
 * rank: it has ended.
 */
void requests_ended(struct rank_session *ss);
/* Ask srun to end the step with this exit code and to print why. 0 or a negative errno. */
int requests_end_step(struct pmi_server *s, const char *why, int code);
/* Tell the user, through srun. */
void requests_report(struct pmi_server *s, const char *text);
/* As above, of a program, while the step goes on: later failures are still reported. */
void requests_note(struct pmi_server *s, const char *text);
/* A rank has not survived what was reported. */
void requests_gave_up(struct pmi_server *s);
/* A frame from srun. 0 or -EPROTO. */
int requests_reply(struct pmi_server *s, const void *data, size_t len);
/* Drops the requests of one interface of the rank. */
void requests_drop(struct rank_session *ss, bool of_pmix);
void requests_fail_all(struct pmi_server *s, const char *why);
/* A line about the request that has waited longest, if there is one. */
void requests_tell_wait(const struct pmi_server *s, unsigned seconds,
			char text[PMI_WAIT_TEXT_MAX]);
