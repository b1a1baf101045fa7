/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work of pmi2x-pmixd between libpmix and the agent: messages of the agent and
 * events of libpmix come in, calls to libpmix and messages to the agent go out. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "helpers/pmixd/events.h"
#include "helpers/pmixd/library.h"
#include "helpers/pmixd/link.h"
#include "helpers/pmixd/pmixd.h"
#include "libutil/log.h"

struct server_options {
	const char *dir;
	bool shared; /* namespaces come and go: pmixd.h */
	enum pmixd_gds gds;
	enum pmixd_collect collect;
	/*
	 * When the request came to a client's connection that has no answer yet, as
	 * server_now; 0: all have one. NULL: nobody knows.
	 */
	int64_t (*asks_since)(int fd);
};

struct server;

/* All of them must outlive it. 0 or -ENOMEM. */
int server_create(struct server **out, const struct server_options *o,
		  const struct library *library, struct events *events,
		  struct link *link, const struct log_hook *log);

/*
 * Handle one, of the agent or of libpmix, which stays the caller's; `message` has the
 * bytes of `m`. 0, or a negative errno, from which on it cannot serve; -EPROTO: the
 * message is invalid.
 */
int server_message(struct server *s, const struct pmix_msg *m, struct payload *message);
int server_event(struct server *s, struct event *e);

/* May clients come? */
bool server_is_ready(const struct server *s);
enum session_turn {
	SESSION_BEGINS,  /* libpmix may have the connection, also where there is no such rank */
	SESSION_WAITS,   /* ask again: the program before has not ended, or not everywhere */
	SESSION_REFUSED, /* another process of the rank uses PMIx */
};
/* The client of connection `fd` says that it is this rank; `waited`: long enough. */
enum session_turn server_begin_session(struct server *s, const char *nspace, uint32_t rank,
				       int fd, bool waited);
/* The client says that it is of this user: tell people if libpmix refuses it for that. */
void server_check_user(struct server *s, const char *nspace, uint32_t rank, uint32_t uid);
/* Connection `fd`, whose session begins, goes to libpmix now. Other connections: nothing. */
void server_open_session(struct server *s, int fd);
/* The client is refused or has left, before libpmix had it; before close(fd). */
void server_drop_session(struct server *s, int fd);
/*
 * Ask the agent whether the client may come; it waits meanwhile, with its connection
 * open. With `refused` it may not, as server_begin_session said, and the agent tells
 * people. Returns the number of the request, which PMIX_MSG_ADMITTED repeats; 0: none was sent.
 */
uint64_t server_ask_admission(struct server *s, const char *nspace, uint32_t rank, int fd,
			      bool refused);
/* A client of PMIx 3 or older comes. */
void server_old_client(struct server *s);

/*
 * Milliseconds until server_expire is due; 0: now; -1: never. `now` is of a clock that
 * does not go back, in ms. Events that are there come first.
 */
int server_timeout(const struct server *s, int64_t now);
int server_expire(struct server *s, int64_t now);

/* The clock that server_timeout wants. */
int64_t server_now(void);
