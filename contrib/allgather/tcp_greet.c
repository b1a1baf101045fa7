/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the connections of the TCP transport: listening, calling, proving. */
#include "tcp_greet.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "settings.h"

#define GREETING "pmi2xag1"
#define GREETING_MS 10000 /* to prove oneself; a caller's process may be slow */
#define CALL_MS 5000      /* for one address to answer the SYN */
/* Until a host that is silent counts as dead, and the looks for it meanwhile. */
#define SILENT_S 30
#define SILENT_MAX_S 3600
#define LOOKS 3

void tcp_greet_init(struct tcp_greet *g, const unsigned char *nonce)
{
	memset(g, 0, sizeof(*g));
	memcpy(g->nonce, nonce, sizeof(g->nonce));
	g->silent_s = SILENT_S;
	g->listener = g->call.fd = -1;
	for (int i = 0; i < TCP_CALLERS_MAX; i++)
		g->callers[i].fd = -1;
}

static void drop(struct tcp_caller *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void stop_listening(struct tcp_greet *g)
{
	if (g->listener >= 0)
		close(g->listener);
	g->listener = -1;
	for (int i = 0; i < TCP_CALLERS_MAX; i++)
		drop(&g->callers[i]);
}

void tcp_greet_close(struct tcp_greet *g)
{
	stop_listening(g);
	drop(&g->call);
}

/* ---- listening ---- */

static int open_listener(void)
{
	int no = 0, fd;

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
		return fd;
	}
	return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int bind_port(int fd, uint16_t port)
{
	union tcp_socket_address at;
	socklen_t len = sizeof(at);

	memset(&at, 0, sizeof(at));
	if (getsockname(fd, &at.any, &len))
		return -errno;
	if (at.any.sa_family == AF_INET)
		at.v4.sin_port = htons(port);
	else
		at.v6.sin6_port = htons(port);
	return bind(fd, &at.any, tcp_address_len(&at)) ? -errno : 0;
}

/* PMI2X_ALLGATHER_TCP_PORTS=FIRST-LAST. Unset: 0 to 0, so the kernel chooses. */
static int read_ports(int *first, int *last, char *why)
{
	static const char name[] = "PMI2X_ALLGATHER_TCP_PORTS";
	const char *text = setting_text(name), *dash;
	char number[8] = "";

	*first = *last = 0;
	if (!text)
		return 0;
	dash = strchr(text, '-');
	if (dash && (size_t)(dash - text) < sizeof(number))
		memcpy(number, text, dash - text);
	if (dash && setting_parse(number, 1, UINT16_MAX, first) &&
	    setting_parse(dash + 1, *first, UINT16_MAX, last))
		return 0;
	return setting_wrong(why, name, text, "FIRST-LAST");
}

static int bind_some_port(int fd, char *why)
{
	int first, last, count, start;
	int rc = read_ports(&first, &last, why);

	if (rc)
		return rc;
	/* Elements on one host start at different places. */
	count = last - first + 1;
	start = getpid() % count;
	for (int i = 0; i < count; i++) {
		rc = bind_port(fd, first + (start + i) % count);
		if (rc != -EADDRINUSE)
			break;
	}
	if (rc)
		snprintf(why, TRANSPORT_REASON_MAX, "no port to listen on: %s",
			 strerror(-rc));
	return rc;
}

int tcp_greet_listen(struct tcp_greet *g, uint16_t *port, char *why)
{
	union tcp_socket_address at;
	socklen_t len = sizeof(at);
	int rc = setting_number("PMI2X_ALLGATHER_TCP_TIMEOUT", 1, SILENT_MAX_S,
				&g->silent_s, why);

	if (rc)
		return rc;
	g->listener = open_listener();
	if (g->listener < 0) {
		snprintf(why, TRANSPORT_REASON_MAX, "socket: %s",
			 strerror(errno));
		return -errno;
	}
	rc = bind_some_port(g->listener, why);
	if (rc)
		return rc;
	if (listen(g->listener, TCP_CALLERS_MAX) ||
	    getsockname(g->listener, &at.any, &len)) {
		snprintf(why, TRANSPORT_REASON_MAX, "listen: %s",
			 strerror(errno));
		return -errno;
	}
	/* Both families have the port at the same place. */
	*port = ntohs(at.v4.sin_port);
	return 0;
}

void tcp_greet_expect(struct tcp_greet *g, const unsigned char *nonce)
{
	memcpy(g->peers[SIDE_LEFT], nonce, TRANSPORT_NONCE_LEN);
	g->expected = true;
}

static void accept_callers(struct tcp_greet *g)
{
	for (int i = 0; i < TCP_CALLERS_MAX; i++) {
		struct tcp_caller *c = &g->callers[i];

		if (c->fd >= 0)
			continue;
		c->fd = accept4(g->listener, NULL, NULL,
				SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (c->fd < 0)
			return;
		c->have = 0;
		c->deadline = clock_ms() + GREETING_MS;
	}
}

/* ---- greetings ---- */

static bool same_nonce(const unsigned char *a, const unsigned char *b)
{
	unsigned char difference = 0;

	for (int i = 0; i < TRANSPORT_NONCE_LEN; i++)
		difference |= a[i] ^ b[i];
	return !difference;
}

/* 1: it has come and is right; 0: not yet; -1: drop the connection. */
static int read_greeting(struct tcp_caller *c, const unsigned char *nonce)
{
	ssize_t n = recv(c->fd, c->got + c->have, sizeof(c->got) - c->have, 0);

	if (n > 0)
		c->have += n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		return -1;
	if (c->have < sizeof(c->got))
		return clock_ms() > c->deadline ? -1 : 0;
	return !memcmp(c->got, GREETING, 8) && same_nonce(c->got + 8, nonce)
		       ? 1 : -1;
}

/* A fresh connection has room for this. */
static bool write_greeting(int fd, const unsigned char *nonce)
{
	unsigned char out[TCP_GREETING_LEN];

	memcpy(out, GREETING, 8);
	memcpy(out + 8, nonce, TRANSPORT_NONCE_LEN);
	return send(fd, out, sizeof(out), MSG_NOSIGNAL) == sizeof(out);
}

static void tune(const struct tcp_greet *g, int fd)
{
	int on = 1, silent = g->silent_s * 1000;
	int idle = g->silent_s > LOOKS ? g->silent_s / LOOKS : 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
}

static int hand_out(const struct tcp_greet *g, struct tcp_caller *c)
{
	int fd = c->fd;

	c->fd = -1;
	tune(g, fd);
	return fd;
}

/* The caller that is the left neighbour; it is answered only when known. */
static int left_progress(struct tcp_greet *g)
{
	if (g->listener < 0 || !g->expected)
		return -EAGAIN;
	accept_callers(g);
	for (int i = 0; i < TCP_CALLERS_MAX; i++) {
		struct tcp_caller *c = &g->callers[i];
		int got = c->fd < 0 ? 0 : read_greeting(c, g->nonce);

		if (got < 0)
			drop(c);
		if (got > 0 && write_greeting(c->fd, g->peers[SIDE_LEFT])) {
			int fd = hand_out(g, c);

			stop_listening(g);
			return fd;
		}
	}
	return -EAGAIN;
}

/* ---- calling ---- */

void tcp_greet_call(struct tcp_greet *g, const struct tcp_address *address,
		    const unsigned char *nonce)
{
	memcpy(g->peers[SIDE_RIGHT], nonce, TRANSPORT_NONCE_LEN);
	g->address = *address;
	g->state = CALL_CONNECTING;
}

static void call_failed(struct tcp_greet *g, const char *what)
{
	char text[TCP_TEXT_MAX];

	tcp_address_show(&g->address.at[g->next - 1], text);
	snprintf(g->why, sizeof(g->why), "%s: %s", text, what);
	drop(&g->call);
}

static void call_next(struct tcp_greet *g)
{
	const union tcp_socket_address *at = &g->address.at[g->next++];
	struct tcp_caller *c = &g->call;

	c->have = 0;
	c->deadline = clock_ms() + CALL_MS;
	g->state = CALL_CONNECTING;
	c->fd = socket(at->any.sa_family,
		       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || (connect(c->fd, &at->any, tcp_address_len(at)) &&
			  errno != EINPROGRESS))
		call_failed(g, strerror(errno));
}

static void finish_connect(struct tcp_greet *g)
{
	struct pollfd p = { g->call.fd, POLLOUT, 0 };
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&p, 1, 0) < 1) {
		if (clock_ms() > g->call.deadline)
			call_failed(g, "no answer");
		return;
	}
	getsockopt(g->call.fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error || !write_greeting(g->call.fd, g->peers[SIDE_RIGHT])) {
		call_failed(g, strerror(error ? error : EPIPE));
		return;
	}
	g->state = CALL_GREETED;
	/* No limit: it answers when it knows of this element, which may take long. */
	g->call.deadline = INT64_MAX;
}

static int right_progress(struct tcp_greet *g)
{
	int got;

	if (g->state == CALL_NONE || g->state == CALL_OVER)
		return -EAGAIN;
	if (g->call.fd < 0 && g->next < g->address.count)
		call_next(g);
	if (g->call.fd >= 0 && g->state == CALL_CONNECTING)
		finish_connect(g);
	if (g->call.fd >= 0 && g->state == CALL_GREETED) {
		got = read_greeting(&g->call, g->nonce);
		if (got < 0)
			call_failed(g, "it did not answer as the neighbour");
		if (got > 0) {
			g->state = CALL_OVER;
			return hand_out(g, &g->call);
		}
	}
	if (g->call.fd >= 0 || g->next < g->address.count)
		return -EAGAIN;
	g->state = CALL_OVER;
	return -ENOTCONN;
}

int tcp_greet_progress(struct tcp_greet *g, enum ring_side side)
{
	return side == SIDE_LEFT ? left_progress(g) : right_progress(g);
}

int tcp_greet_poll(const struct tcp_greet *g, struct pollfd *fds)
{
	int n = 0;

	for (int i = 0; i < TCP_CALLERS_MAX; i++) {
		if (g->callers[i].fd >= 0)
			fds[n++] = (struct pollfd){ g->callers[i].fd, POLLIN, 0 };
	}
	/* With all places taken, new callers wait in the kernel. */
	if (g->listener >= 0 && g->expected && n < TCP_CALLERS_MAX)
		fds[n++] = (struct pollfd){ g->listener, POLLIN, 0 };
	if (g->call.fd >= 0)
		fds[n++] = (struct pollfd){ g->call.fd, g->state ==
			CALL_CONNECTING ? POLLOUT : POLLIN, 0 };
	return n;
}
