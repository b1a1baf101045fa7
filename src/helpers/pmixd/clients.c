/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients that come to libpmix, wait, or are refused. */
#include "helpers/pmixd/clients.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/pmixd/accept_hook.h"
#include "helpers/pmixd/client_hello.h"
#include "libio/owner.h"

#define END_WAIT_MS 1000 /* for the end of a session, when the next program comes */
#define END_LOOK_MS 20   /* between two looks whether it has ended */
#define EVENTS_AT_ONCE 16

struct waiting {
	struct waiting *next;
	int fd;
	bool old;
	bool told; /* the agent knows that the client is of another user */
	int64_t until; /* server_now: waits until then for another's end; 0: does not */
	uint64_t admission; /* number of the request to the agent without an answer; or 0 */
	enum { UNDECIDED, ADMITTED, REFUSED } verdict;
};

struct clients {
	struct server *server;
	const struct log_hook *log;
	struct waiting *first;
	int epoll; /* of their connections, each time that bytes come */
};

int clients_create(struct clients **out, struct server *server, const struct log_hook *log)
{
	struct clients *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->server = server;
	c->log = log;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0) {
		free(c);
		return -errno;
	}
	*out = c;
	return 0;
}

int clients_fd(const struct clients *c)
{
	return c->epoll;
}

static void let_in(struct clients *c, const struct waiting *w)
{
	int rc;

	(void)epoll_ctl(c->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	if (w->old)
		server_old_client(c->server);
	server_open_session(c->server, w->fd);
	rc = accept_hook_let_in(w->fd);
	if (rc)
		log_error(c->log, "closed the connection of a PMIx client: %s", strerror(-rc));
}

/* Also a client that has left. */
static void turn_away(struct clients *c, const struct waiting *w)
{
	server_drop_session(c->server, w->fd);
	close(w->fd);
}

static void ask(struct clients *c, struct waiting *w, const struct client_hello *hello,
		bool refused)
{
	w->admission = server_ask_admission(c->server, hello->nspace, hello->rank, w->fd,
					   refused);
	if (!w->admission)
		w->verdict = refused ? REFUSED : ADMITTED;
}

/*
 * Decide whether a client that says it is this rank may come; undecided: ask again later.
 */
static void decide(struct clients *c, struct waiting *w, const struct client_hello *hello)
{
	bool waited = w->until && server_now() >= w->until;
	enum session_turn turn;

	if (w->admission || w->verdict != UNDECIDED)
		return;
	if (!w->told && hello->has_uid)
		server_check_user(c->server, hello->nspace, hello->rank, hello->uid);
	w->told = true;
	turn = server_begin_session(c->server, hello->nspace, hello->rank, w->fd, waited);
	if (!w->until)
		w->until = server_now() + END_WAIT_MS;
	if (turn != SESSION_WAITS)
		ask(c, w, hello, turn == SESSION_REFUSED);
}

int clients_admitted(struct clients *c, uint64_t admission, int status)
{
	for (struct waiting *w = c->first; w && admission; w = w->next) {
		if (w->admission != admission)
			continue;
		w->admission = 0;
		w->verdict = status ? REFUSED : ADMITTED;
	}
	return 0;
}

/*
 * The client has been killed while it waited, or has given up (handshake_wait_time of
 * libpmix) and comes again: libpmix here would take the end of this one for the rank's.
 */
static bool has_left(const struct waiting *w)
{
	uint32_t uid;

	return owner_of_peer(w->fd, &uid) == -ENOENT;
}

/* True: it does not wait any more. */
static bool look(struct clients *c, struct waiting *w)
{
	char bytes[CLIENT_HELLO_MAX];
	ssize_t n = recv(w->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	struct client_hello hello;
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	rc = n <= 0 || has_left(w) ? -EPIPE : client_hello_read(bytes, n, &hello);
	if (rc > 0)
		decide(c, w, &hello);
	if (!rc || (rc > 0 && w->verdict == UNDECIDED))
		return false;
	if (rc == -EPROTO || (rc > 0 && w->verdict == ADMITTED))
		let_in(c, w);
	else
		turn_away(c, w);
	return true;
}

void clients_add(struct clients *c, int fd, bool old)
{
	struct waiting *w = calloc(1, sizeof(*w));
	struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };

	if (!w || epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e)) {
		log_error(c->log, "closed the connection of a PMIx client: %s",
			  strerror(w ? errno : ENOMEM));
		free(w);
		close(fd);
		return;
	}
	*w = (struct waiting){ .next = c->first, .fd = fd, .old = old };
	c->first = w;
}

void clients_look(struct clients *c)
{
	struct epoll_event events[EVENTS_AT_ONCE];

	(void)epoll_wait(c->epoll, events, EVENTS_AT_ONCE, 0);
	for (struct waiting **at = &c->first, *w; (w = *at);) {
		if (!look(c, w)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
}

int clients_timeout(const struct clients *c)
{
	for (const struct waiting *w = c->first; w; w = w->next)
		if (w->until && !w->admission && w->verdict == UNDECIDED)
			return END_LOOK_MS;
	return -1;
}
