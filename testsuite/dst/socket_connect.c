/* SPDX-License-Identifier: BSD-3-Clause */
/* Making connections between simulated hosts, and what sockets say of themselves. */
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/un.h>
#include <unistd.h>

#include "testsuite/dst/sockets_internal.h"

#define SYN_TIMEOUT (120 * SEC)

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif

int __wrap_socket(int family, int type, int protocol);
int __wrap_socketpair(int family, int type, int protocol, int fds[2]);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_listen(int fd, int backlog);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len);

/* ---- addresses ---- */

void host_address(struct sockaddr_storage *out, uint32_t host, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000000 + host);
	in->sin_port = htons(port);
}

static void give_address(const struct socket *s, uint32_t host, uint16_t port,
			 struct sockaddr *addr, socklen_t *len)
{
	struct sockaddr_storage out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out;
	uint32_t ip = htonl(0x0a000000 + host);

	host_address(&out, host, port);
	if (s->family == AF_INET6) {
		memset(&out, 0, sizeof(out));
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		in6->sin6_addr.s6_addr[10] = in6->sin6_addr.s6_addr[11] = 0xff;
		memcpy(&in6->sin6_addr.s6_addr[12], &ip, 4);
	}
	memcpy(addr, &out, *len < sizeof(out) ? *len : sizeof(out));
}

static uint16_t port_in(const struct sockaddr *addr)
{
	return ntohs(addr->sa_family == AF_INET ?
			     ((const struct sockaddr_in *)addr)->sin_port :
			     ((const struct sockaddr_in6 *)addr)->sin6_port);
}

static struct socket *listener_at(uint32_t host, uint16_t port)
{
	struct socket *s = socket_first();

	while (s && (s->state != SOCKET_LISTENS || s->host != host ||
		     s->port != port))
		s = s->next;
	return s;
}

static bool is_bound(uint32_t host, uint16_t port)
{
	const struct socket *s = socket_first();

	while (s && (s->host != host || s->port != port || s->peer_port))
		s = s->next;
	return s;
}

/* ---- making connections ---- */

int __wrap_socket(int family, int type, int protocol)
{
	return fd_open(socket_new(family, type)->file);
}

static void join(struct socket *a, struct socket *b)
{
	a->peer = b;
	b->peer = a;
	a->state = b->state = SOCKET_CONNECTED;
}

int __wrap_socketpair(int family, int type, int protocol, int fds[2])
{
	struct socket *a, *b;

	if (!fd_available())
		return fails(EMFILE);
	a = socket_new(family, type);
	b = socket_new(family, type);
	join(a, b);
	fds[0] = fd_open(a->file);
	fds[1] = fd_open(b->file);
	return 0;
}

int local_listen(void)
{
	struct socket *s = socket_new(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK);

	s->state = SOCKET_LISTENS;
	return fd_open(s->file);
}

static void wait_for_accept(struct socket *listener, struct socket *new,
			    uint64_t arrival)
{
	listener->arrivals[listener->nwaiting] = arrival;
	listener->waiting[listener->nwaiting++] = new;
	listener->connections++;
}

static int connect_to(struct socket *s, struct socket *listener)
{
	if (!listener || listener->no_more_input || listener->nwaiting == BACKLOG)
		return fails(ECONNREFUSED);
	join(s, socket_new(AF_UNIX, SOCK_STREAM));
	wait_for_accept(listener, s->peer, now());
	return 0;
}

int local_connect(int fd)
{
	struct socket *listener = socket_of(fd), *s;

	if (!fd_available())
		return fails(EMFILE);
	s = socket_new(AF_UNIX, SOCK_STREAM);
	if (!connect_to(s, listener))
		return fd_open(s->file);
	file_unref(s->file);
	return -1;
}

/* ---- names of unix sockets ---- */

/* Its length in an address; the name is behind a NUL. */
static size_t name_in(const struct sockaddr *addr, socklen_t len, const char **name)
{
	*name = ((const struct sockaddr_un *)addr)->sun_path + 1;
	return len - offsetof(struct sockaddr_un, sun_path) - 1;
}

/* The socket of that name on this host; NULL: there is none. */
static struct socket *socket_named(uint32_t host, const struct sockaddr *addr, socklen_t len)
{
	struct socket *s = socket_first();
	const char *name;
	size_t n = name_in(addr, len, &name);

	while (s && (s->host != host || s->name_len != n || memcmp(s->name, name, n) != 0))
		s = s->next;
	return s;
}

static int bind_name(struct socket *s, const struct sockaddr *addr, socklen_t len)
{
	const char *name;

	if (socket_named(s->host, addr, len))
		return fails(EADDRINUSE);
	s->name_len = name_in(addr, len, &name);
	memcpy(s->name, name, s->name_len);
	return 0;
}

static int connect_to_name(struct socket *s, const struct sockaddr *addr, socklen_t len)
{
	struct socket *listener = socket_named(s->host, addr, len);

	if (listener && listener->state != SOCKET_LISTENS)
		listener = NULL;
	return connect_to(s, listener);
}

/* ---- more connections ---- */

int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct socket *s = socket_of(fd);
	uint16_t port;

	if (!s)
		return -1;
	if (s->family == AF_UNIX)
		return bind_name(s, addr, len);
	port = port_in(addr);
	if (port && is_bound(s->host, port))
		return fails(EADDRINUSE);
	s->port = port ? port : network_next_port(s->host);
	return 0;
}

int __wrap_listen(int fd, int backlog)
{
	struct socket *s = socket_of(fd);

	if (!s)
		return -1;
	s->state = SOCKET_LISTENS;
	trace("listens", s->host, s->port);
	return 0;
}

static void end_connect(struct socket *s, int error, uint64_t when)
{
	s->connect_error = error;
	s->connect_end = when;
	wake_at(when);
}

static void plan_cut(struct socket *s)
{
	if (network.cut_early) {
		network.cut_early--;
		s->cut_after = 1 + draw_below(60);
	} else if (network.cut_bytes && draw_once_in(network.cut_late)) {
		s->cut_after = 1 + draw_between(60, network.cut_bytes);
	}
}

/* A first packet that is lost is sent again after a second. */
static uint64_t lost_packets(void)
{
	if (!network.lose_first)
		return 0;
	network.lose_first--;
	return SEC;
}

/* The answer of the other host to the first packet. */
static struct socket *accept_connect(struct socket *s, uint64_t arrival)
{
	struct socket *listener = listener_at(s->peer_host, s->peer_port), *new;
	struct process *before;

	if (!listener || listener->nwaiting == BACKLOG)
		return NULL;
	before = process_switch(listener->maker);
	new = socket_new(listener->family, SOCK_STREAM);
	process_switch(before);
	new->host = s->peer_host;
	new->port = s->peer_port;
	new->peer_host = s->host;
	new->peer_port = s->port;
	join(s, new);
	s->state = SOCKET_CONNECTS; /* until the answer is there */
	plan_cut(s);
	plan_cut(new);
	wait_for_accept(listener, new, arrival);
	wake_at(arrival);
	return new;
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct socket *s = socket_of(fd);
	uint64_t there, back;

	task_maybe_switch();
	if (!s || s->state != SOCKET_NEW)
		return s ? fails(s->state == SOCKET_CONNECTS ? EALREADY :
							       EISCONN) : -1;
	if (s->family == AF_UNIX)
		return connect_to_name(s, addr, len);
	s->port = network_next_port(s->host);
	s->peer_host = ntohl(((const struct sockaddr_in *)addr)->sin_addr.s_addr) &
		       (HOSTS_MAX - 1);
	s->peer_port = port_in(addr);
	s->state = SOCKET_CONNECTS;
	trace("connects", s->peer_host, s->peer_port);
	there = now() + socket_travel_time(s) + lost_packets();
	back = there + socket_travel_time(s);
	if (network.refuse_first) {
		network.refuse_first--;
		end_connect(s, ECONNREFUSED, back);
	} else if (socket_is_down(s)) {
		end_connect(s, ETIMEDOUT, now() + SYN_TIMEOUT);
	} else if (accept_connect(s, there)) {
		end_connect(s, 0, back);
	} else {
		end_connect(s, ECONNREFUSED, back);
	}
	return fails(draw_once_in(hardship.interrupts) ? EINTR : EINPROGRESS);
}

/* Take the answer to a connect, if it has come. */
void socket_settle(struct socket *s)
{
	if (s->state != SOCKET_CONNECTS || s->connect_end > now())
		return;
	s->state = s->connect_error ? SOCKET_DEAD : SOCKET_CONNECTED;
	s->error = s->connect_error;
	s->changes++;
}

bool socket_has_connection(const struct socket *s)
{
	return s->nwaiting && s->arrivals[0] <= now();
}

int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct socket *s = socket_of(fd), *new;
	int made;

	task_maybe_switch();
	if (!s) {
		failed("accept4(%d), which is not open", fd);
		return -1;
	}
	if (!socket_has_connection(s))
		return fails(EAGAIN);
	if (!fd_available())
		return fails(EMFILE);
	if (draw_once_in(hardship.aborted))
		return fails(ECONNABORTED);
	new = s->waiting[0];
	s->nwaiting--;
	memmove(s->waiting, s->waiting + 1, s->nwaiting * sizeof(*s->waiting));
	memmove(s->arrivals, s->arrivals + 1,
		s->nwaiting * sizeof(*s->arrivals));
	new->file->nonblocking = flags & SOCK_NONBLOCK;
	made = fd_open(new->file);
	trace("accepts", made, new->peer_host);
	return made;
}

/* ---- what there is to say of one ---- */

int __wrap_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct socket *s = socket_of(fd);

	if (!s)
		return -1;
	give_address(s, s->host, s->port, addr, len);
	return 0;
}

int __wrap_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct socket *s = socket_of(fd);

	if (!s)
		return -1;
	if (s->state == SOCKET_DEAD)
		return fails(ENOTCONN);
	give_address(s, s->peer_host, s->peer_port, addr, len);
	return 0;
}

static int give_pidfd(struct socket *s, int *out)
{
	struct file *f;

	if (hardship.no_peerpidfd)
		return fails(ENOPROTOOPT);
	if (s->maker->dead)
		return fails(ESRCH);
	f = file_new(FILE_PROCESS);
	f->process = s->maker;
	*out = fd_open(f);
	return *out < 0 ? -1 : 0;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	struct socket *s = socket_of(fd);
	struct ucred *credentials = value;

	if (!s)
		return -1;
	socket_settle(s);
	socket_take_reset(s);
	switch (name) {
	case SO_ERROR:
		*(int *)value = socket_take_error(s, 0);
		return 0;
	case SO_TYPE:
		*(int *)value = s->type;
		return 0;
	case SO_PEERCRED:
		*credentials = (struct ucred){ .pid = s->maker->pid, .uid = getuid() };
		return 0;
	case SO_PEERPIDFD:
		return give_pidfd(s, value);
	default:
		return fails(ENOPROTOOPT);
	}
}

int __wrap_setsockopt(int fd, int level, int name, const void *value,
		      socklen_t len)
{
	struct socket *s = socket_of(fd);

	if (!s)
		return -1;
	if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT)
		s->dead_peer_ns = *(const unsigned *)value * MS;
	if (level == SOL_SOCKET && name == SO_PEEK_OFF)
		s->peek_offset = *(const int *)value;
	return 0;
}
