/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection to the PMI server: requests go out, responses are matched to
 * them, from any number of threads.
 *
 * No thread of its own: of the threads that wait, one reads for all (the
 * leader); it hands every response to the call it belongs to. With an extended
 * server responses are matched by thrid and any number of calls may be under
 * way. Other servers do not echo thrid: there a response is matched by its
 * name, and a call whose response would have the same name as one that is under
 * way is kept back until that one is answered. On the PMI-1 wire there is one
 * call at a time, because servers take what one read returns for one command; but
 * those of version 1.2 do not, and tell the tags of barriers: there calls whose
 * responses have different names or tags are under way together.
 *
 * No thread holds the lock while it waits for the server, be it to read or to take
 * a request: a server that has answers for us may take nothing before they are
 * read. A thread whose request does not fit into the socket reads meanwhile.
 *
 * Errors: 0; negative errno: -ECONNRESET (the server has hung up), -EPROTO (it
 * sent what is no response), -EREMOTEIO (it refused and gave no PMI code),
 * -ENOMEM; positive: the PMI error code in the response.
 */
#pragma once

#include "call.h"

#define REQUEST_MAX ((size_t)8 << 20) /* bytes of one request */

struct conn;

/* Errors as pmi_fd_open. Prints nothing. */
int conn_open(struct conn **out, int fd);
/* No call may be under way. PMI_FD stays open. */
void conn_close(struct conn *c);

/* The socket as a transport of collectives. */
struct transport *conn_transport(struct conn *c);

/* The wire after the handshake; `thrid`: the server echoes it. */
void conn_set_wire(struct conn *c, enum pmi_protocol protocol, bool thrid);
/* The server is one of PMI-1 1.2: its answers to barriers have their tags. */
void conn_set_tagged(struct conn *c, bool tagged);
enum pmi_protocol conn_protocol(const struct conn *c);
/* The rank, for messages; -1 when it is not known. */
void conn_set_rank(struct conn *c, int rank);
/* Print refused requests on stderr. */
void conn_set_debug(struct conn *c, bool debug);
/*
 * Programs that this one executes do not get the connection (pmi_fd_keep). For servers
 * that cannot tell two processes apart.
 */
void conn_keep(struct conn *c);
/* The next descriptor that the server passed (the caller closes it), or -1. */
int conn_take_fd(struct conn *c);

/* Fail all calls, now and later, with `error`; wakes every thread. */
void conn_break(struct conn *c, int error);

/* Why all calls fail; 0 while the connection works. */
int conn_error(struct conn *c);
/* Break the connection when the server has hung up, while nobody reads. */
void conn_check(struct conn *c);
/* Remember why a request was refused; print it, if that is wanted. */
void conn_note_refusal(struct conn *c, const char *request, int error,
		       const char *why);
/* The server's words about the last request that it refused; empty: none. */
void conn_refusal(struct conn *c, char *out, size_t size);
/* The PMI code of a response as an error. */
int conn_reply_error(int code);

/* Start a request; add its fields to call->writer, then post it. */
void call_begin(struct call *call, struct conn *c, const char *cmd,
		const char *response);
/* As above, for a request whose bytes the caller puts into call->request. */
void call_begin_raw(struct call *call, struct conn *c, const char *response);
/*
 * No field comes any more. 0 or why there is no request, -ENOMEM as a rule. After 0
 * call_post needs no memory.
 */
int call_close(struct call *call);
/* Hand the request over. 0 or an error; then the call is done. */
int call_post(struct call *call);
/* call_post and call_wait. */
int call_run(struct call *call);
/* Send a message that has no response. 0 or an error. Ends the call. */
int call_send_only(struct call *call);
