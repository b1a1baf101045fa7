/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop: the agent's messages, libpmix's events, new clients. */
#include "helpers/pmixd/program.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/pmixd/accept_hook.h"
#include "helpers/pmixd/clients.h"
#include "libconfine/host_msg.h"
#include "libio/owner.h"
#include "pmi2x-build.h"

enum source {
	FROM_AGENT,
	FROM_HOST,
	FROM_LIBRARY,
	FROM_WAITING,
	FROM_CLIENT,
	FROM_OLD_CLIENT,
	SOURCES,
};

struct program {
	const struct program_options *options;
	struct library library;
	struct events *events;
	struct link link;
	struct server *server;
	struct clients *clients;
	uint64_t strangers; /* connections of other users */
	bool serves;        /* ready for clients, as the agent knows */
};

/* ---- the host ---- */

static void say(enum host_type type, uint32_t number, const char *text)
{
	size_t len = strlen(text);
	const struct host_msg m = {
		.type = type,
		.number = number,
		.data = text,
		.len = len < HOST_DATA_MAX ? len : HOST_DATA_MAX,
	};

	(void)host_msg_send_wait(PMIXD_FD_HOST, &m);
}

static void say_line(void *arg, enum log_level level, const char *text)
{
	say(HOST_LOG, level, text);
}

static const struct log_hook host_log = { .line = say_line };

int program_give_up(const char *why)
{
	say(HOST_KILL, 0, why);
	return 1;
}

static int failed(const char *what, int error)
{
	char why[256];

	snprintf(why, sizeof(why), "pmi2x-pmixd cannot %s: %s", what,
		 strerror(-error));
	return program_give_up(why);
}

/* ---- clients ---- */

/* Any user of the machine can connect; libpmix believes whom a client says it is. */
static bool may_enter(struct program *p, int fd)
{
	uint32_t uid;
	int rc = owner_of_peer(fd, &uid);

	if (!rc && uid == p->options->uid)
		return true;
	if (!rc && !p->strangers++)
		log_info(&host_log,
			 "refused a PMIx connection of a process of user %u, who is not the job's user; further ones are refused without a message",
			 uid);
	return false;
}

/* 0: none comes. */
static int admit(struct program *p, int listener, bool old)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE ? -errno : 0;
	if (may_enter(p, fd))
		clients_add(p->clients, fd, old);
	else
		close(fd);
	return 0;
}

/* A client, whom the host has looked at; or its end. 0 or a negative errno. */
static int take_host_message(struct program *p)
{
	char room[HOST_MSG_MAX];
	struct host_msg m;
	int fd, rc = host_msg_receive_with(PMIXD_FD_HOST, room, &m, &fd);

	if (rc <= 0)
		return rc;
	if (m.type != HOST_CLIENT || fd < 0) {
		if (fd >= 0)
			close(fd);
		return -EPIPE;
	}
	clients_add(p->clients, fd, m.number);
	return 0;
}

/* ---- the agent and libpmix ---- */

static int take_messages(struct program *p)
{
	struct pmix_msg m;
	struct payload *message;
	int rc = link_read(&p->link), more = 1;

	while (!rc && (more = link_next(&p->link, &m, &message)) > 0)
		rc = m.type == PMIX_MSG_ADMITTED ?
			     clients_admitted(p->clients, m.id, m.status) :
			     server_message(p->server, &m, message);
	return rc ? rc : more;
}

static int take_events(struct program *p)
{
	struct event *e;
	int rc = 0;

	while (!rc && (e = events_take(p->events))) {
		rc = server_event(p->server, e);
		event_free(e);
	}
	return rc;
}

static int say_hello(struct program *p)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_HELLO,
		.rank = PMIX_NO_RANK,
		.number = PMIX_MSG_VERSION,
		.text = p->library.version,
		.text_len = strlen(p->library.version),
	};

	return link_send(&p->link, &m);
}

/* ---- the loop ---- */

static void set_sources(const struct program *p, struct pollfd fds[SOURCES])
{
	bool ready = p->options->listens && server_is_ready(p->server);

	fds[FROM_AGENT] = (struct pollfd){
		.fd = PMIXD_FD_AGENT,
		.events = POLLIN | (link_has_to_write(&p->link) ? POLLOUT : 0),
	};
	fds[FROM_HOST] = (struct pollfd){ PMIXD_FD_HOST, POLLIN, 0 };
	fds[FROM_LIBRARY] = (struct pollfd){ events_fd(p->events), POLLIN, 0 };
	fds[FROM_WAITING] = (struct pollfd){ clients_fd(p->clients), POLLIN, 0 };
	fds[FROM_CLIENT] = (struct pollfd){ ready ? PMIXD_FD_LISTENER : -1, POLLIN, 0 };
	fds[FROM_OLD_CLIENT] =
		(struct pollfd){ ready ? PMIXD_FD_LISTENER_OLD : -1, POLLIN, 0 };
}

/* For a descriptor that is not there poll says POLLNVAL. */
static bool readable(const struct pollfd *fd)
{
	return fd->revents & (POLLIN | POLLHUP | POLLERR);
}

/* The supervisor may let ranks wait for that. */
static void say_serves(struct program *p)
{
	if (p->serves || !p->options->listens || !server_is_ready(p->server))
		return;
	p->serves = true;
	say(HOST_SERVES, 0, "");
}

static int handle(struct program *p, const struct pollfd fds[SOURCES])
{
	int rc = 0;

	if (readable(&fds[FROM_HOST]))
		rc = take_host_message(p);
	/* The rights of a client can depend on a message that came before it. */
	if (!rc && (readable(&fds[FROM_AGENT]) || readable(&fds[FROM_WAITING])))
		rc = take_messages(p);
	say_serves(p);
	if (!rc)
		rc = take_events(p);
	if (!rc)
		rc = server_expire(p->server, server_now());
	if (!rc && readable(&fds[FROM_CLIENT]))
		rc = admit(p, PMIXD_FD_LISTENER, false);
	if (!rc && readable(&fds[FROM_OLD_CLIENT]))
		rc = admit(p, PMIXD_FD_LISTENER_OLD, true);
	clients_look(p->clients);
	return rc ? rc : link_write(&p->link);
}

static int longest_sleep(const struct program *p)
{
	int ms = server_timeout(p->server, server_now());
	int clients_ms = clients_timeout(p->clients);

	return ms < 0 || (clients_ms >= 0 && clients_ms < ms) ? clients_ms : ms;
}

static int turn(struct program *p)
{
	struct pollfd fds[SOURCES];
	int n;

	set_sources(p, fds);
	n = poll(fds, SOURCES, longest_sleep(p));
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return handle(p, fds);
}

static int loop(struct program *p)
{
	int rc = say_hello(p);

	rc = rc ? rc : link_write(&p->link);
	while (!rc)
		rc = turn(p);
	if (rc == -EPIPE || rc == -ECONNRESET)
		return 0;
	if (rc == -EPROTO)
		return program_give_up("pmi2x-pmixd: the agent sent an invalid message");
	return failed("go on", rc);
}

int program_run(const struct program_options *o)
{
	static struct program p; /* large, and libpmix's threads outlive this function */
	char why[LIBRARY_WHY_MAX];
	int rc;

	p.options = o;
	say(HOST_READY, HOST_VERSION, PMI2X_BUILD);
	if (o->unrestricted[0])
		log_debug(&host_log, "pmi2x-pmixd %s", o->unrestricted);
	if (library_open(&p.library, o->library, why))
		return program_give_up(why);
	link_init(&p.link, PMIXD_FD_AGENT);
	rc = accept_hook_make();
	rc = rc ? rc : events_create(&p.events);
	rc = rc ? rc : server_create(&p.server, &o->server, &p.library, p.events,
				     &p.link, &host_log);
	rc = rc ? rc : clients_create(&p.clients, p.server, &host_log);
	return rc ? failed("start", rc) : loop(&p);
}
