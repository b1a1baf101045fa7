/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of the simulated kernel: their lives, and what is on its way to them. */
#include "testsuite/dst/sockets_internal.h"

#define FIRST_PORT 32768
#define LOCAL_BUFFER 65536

struct network network;

static struct socket *all;
static uint16_t next_port[HOSTS_MAX];
static bool down[HOSTS_MAX];

/* ---- life ---- */

struct socket *socket_new(int family, int type)
{
	struct socket *s = __real_calloc(1, sizeof(*s));

	s->file = file_new(FILE_SOCKET);
	s->file->socket = s;
	s->file->nonblocking = type & SOCK_NONBLOCK;
	s->family = family;
	s->type = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);
	s->maker = process_current();
	s->host = process_current()->host;
	s->last = &s->first;
	s->peek_offset = -1;
	s->room = family == AF_UNIX ? LOCAL_BUFFER : hardship.buffer;
	s->next = all;
	s->at = &all;
	if (all)
		all->at = &s->next;
	all = s;
	return s;
}

struct socket *socket_of(int fd)
{
	struct file *f = file_find(fd);

	if (!f)
		return NULL;
	if (f->kind != FILE_SOCKET) {
		errno = ENOTSOCK;
		return NULL;
	}
	return f->socket;
}

void socket_drop_segment(struct socket *s)
{
	struct segment *g = s->first;

	s->first = g->next;
	if (!s->first)
		s->last = &s->first;
	s->changes++; /* so that these and what has arrived only grow */
	for (unsigned i = 0; i < g->nfds; i++)
		file_unref(g->fds[i]);
	__real_free(g);
}

uint64_t socket_travel_time(const struct socket *s)
{
	uint64_t ns;

	if (s->family == AF_UNIX)
		return 0;
	ns = draw_between(10 * US, hardship.latency);
	return draw_once_in(hardship.stalls) ? ns + draw_below(hardship.stall) :
					       ns;
}

/* Append to what is on its way to `s`. */
struct segment *socket_deliver(struct socket *s, const void *data, size_t len)
{
	struct segment *g = __real_calloc(1, sizeof(*g) + len);

	g->len = len;
	if (len)
		memcpy(g->bytes, data, len);
	g->arrival = now() + socket_travel_time(s);
	if (g->arrival < s->last_arrival)
		g->arrival = s->last_arrival;
	s->last_arrival = g->arrival;
	if (g->arrival > now())
		wake_at(g->arrival);
	s->bytes += len;
	*s->last = g;
	s->last = &g->next;
	return g;
}

/* Both ends hear of it; what was on its way to them may still come. */
void socket_reset(struct socket *s, int error)
{
	if (s && !s->had_reset && s->state == SOCKET_CONNECTED) {
		s->had_reset = true;
		socket_deliver(s, NULL, 0)->error = error;
	}
}

bool socket_is_down(const struct socket *s)
{
	return down[s->host] || down[s->peer_host];
}

/* Keep-alive, or data that nobody takes, tells after a while. */
static void notice_silence(struct socket *s)
{
	if (!s->dead_peer_ns || s->had_reset || s->state != SOCKET_CONNECTED)
		return;
	s->had_reset = true;
	socket_deliver(s, NULL, 0);
	for (struct segment *g = s->first; g; g = g->next)
		if (!g->next) {
			g->error = ETIMEDOUT;
			g->arrival = now() + s->dead_peer_ns;
			wake_at(g->arrival);
		}
}

static void leave_peer(struct socket *s)
{
	struct socket *peer = s->peer;
	bool unread = s->first && s->first->len;

	if (!peer)
		return;
	s->peer = NULL;
	peer->peer = NULL;
	peer->changes++;
	if (peer->family != AF_UNIX && socket_is_down(s))
		notice_silence(peer);
	else if (unread)
		socket_reset(peer, ECONNRESET);
	else if (!s->wrote_end && !s->had_reset)
		socket_deliver(peer, NULL, 0);
}

void socket_close(struct file *f)
{
	struct socket *s = f->socket;

	for (unsigned i = 0; i < s->nwaiting; i++)
		file_unref(s->waiting[i]->file);
	s->nwaiting = 0;
	leave_peer(s);
	while (s->first)
		socket_drop_segment(s);
	*s->at = s->next;
	if (s->next)
		s->next->at = s->at;
	__real_free(s);
}

void network_begin(void)
{
	memset(&network, 0, sizeof(network));
	memset(down, 0, sizeof(down));
	for (unsigned i = 0; i < HOSTS_MAX; i++)
		next_port[i] = FIRST_PORT;
}

unsigned network_left(void)
{
	unsigned n = 0;

	for (const struct socket *s = all; s; s = s->next)
		n++;
	return n;
}

void network_host_is_down(uint32_t host)
{
	down[host] = true;
	for (struct socket *s = all; s; s = s->next)
		if (s->family != AF_UNIX && s->peer_host == host &&
		    s->host != host)
			notice_silence(s);
}

struct socket *socket_first(void)
{
	return all;
}

uint16_t network_next_port(uint32_t host)
{
	return next_port[host]++;
}
