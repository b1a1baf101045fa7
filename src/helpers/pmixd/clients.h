/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of PMIx clients between the listener and libpmix (accept_hook.h). A rank
 * has one session of PMIx at a time, of one process: libpmix would take a second
 * process for the first one. So a connection waits here until its process has said
 * which rank it is. While the rank's session lives it waits for the end of that, one
 * second at most, and is then closed, after the agent has looked which processes these
 * are. Where ranks use PMI the agent is asked about each client: another process may
 * use that. Programs of a rank that follow one another are let in, and a client that
 * has closed its end meanwhile is not. A program that follows one which was killed also
 * waits, a second at most, until libpmix has told of that, and for the other ranks'
 * programs to end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "helpers/pmixd/server.h"
#include "libutil/log.h"

struct clients;

/* 0 or a negative errno. */
int clients_create(struct clients **out, struct server *server, const struct log_hook *log);
/* Readable when one of them has said something. */
int clients_fd(const struct clients *c);
/* A connection, which becomes theirs; `old`: of PMIx 3 or older. */
void clients_add(struct clients *c, int fd, bool old);
/* The agent's answer to server_ask_admission. 0. */
int clients_admitted(struct clients *c, uint64_t admission, int status);
/* Let in or close those that it is time for. Ends of sessions are known by then. */
void clients_look(struct clients *c);
/* Milliseconds until clients_look is due; -1: never. */
int clients_timeout(const struct clients *c);
