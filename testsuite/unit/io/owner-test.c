/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of the socket at the other end of a connection over the loopback device. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libio/listener_socket.h"
#include "libio/holder.h"
#include "libio/owner.h"

/* A connection: both ends, and what accepted it. */
struct pair {
	int listener, client, accepted;
	struct sockaddr_in at; /* the client's address */
};

static int listen_at(uint16_t port, uint16_t *bound)
{
	struct sockaddr_storage here = { .ss_family = AF_INET };

	((struct sockaddr_in *)&here)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return listener_socket(&here, port, bound);
}

/* The client may share its port with a listener that comes later. */
static void pair_open(struct pair *p)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(p->at);
	uint16_t port;
	int yes = 1;

	p->listener = listen_at(0, &port);
	assert_true(p->listener >= 0);
	to.sin_port = htons(port);
	p->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(p->client, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	p->at = to;
	p->at.sin_port = 0;
	assert_int_equal(bind(p->client, (struct sockaddr *)&p->at, len), 0);
	assert_int_equal(connect(p->client, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(getsockname(p->client, (struct sockaddr *)&p->at, &len), 0);
	p->accepted = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(p->accepted >= 0);
}

static void pair_close(struct pair *p)
{
	close(p->accepted);
	close(p->listener);
}

static void end_pair(void *pair)
{
	pair_close(pair);
	free(pair);
}

static struct pair *new_pair(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	pair_open(p);
	return unit_at_end(end_pair, p);
}

#define PAIR_TEST(name) TEST_ON(name, struct pair *p, new_pair())

/* ---- a kernel without its module for TCP ---- */

static bool lacks_tcp_diag;

ssize_t __real_recv(int fd, void *at, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *at, size_t size, int flags);

/* A kernel without tcp_diag gives this answer for every connection. */
ssize_t __wrap_recv(int fd, void *at, size_t size, int flags)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr body;
	} m = {
		.head = { .nlmsg_len = sizeof(m), .nlmsg_type = NLMSG_ERROR },
		.body = { .error = -ENOENT },
	};

	if (!lacks_tcp_diag)
		return __real_recv(fd, at, size, flags);
	assert_true(size >= sizeof(m));
	memcpy(at, &m, sizeof(m));
	return sizeof(m);
}

/*
 * A client that is gone without a word: a socket under repair is closed so. The
 * connection waits here, and somebody listens where the client was.
 */
static void listener_is_not_taken_for_a_peer(bool lacks)
{
	uint32_t uid = ~0U;
	int rc, listener, on = 1;
	uint16_t port;
	struct pair p;

	NOT_EMULATED("sock_diag");
	pair_open(&p);
	if (setsockopt(p.client, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on))) {
		assert_int_equal(errno, EPERM);
		skip();
	}
	close(p.client);
	listener = listen_at(ntohs(p.at.sin_port), &port);
	assert_true(listener >= 0);
	lacks_tcp_diag = lacks;
	rc = owner_of_peer(p.accepted, &uid);
	lacks_tcp_diag = false;
	assert_int_equal(rc, -ENOENT);
	assert_int_equal(uid, ~0U);
	close(listener);
	pair_close(&p);
}

/* These run first: the process remembers that sock_diag has told of a socket. */
TEST(listener_is_not_taken_for_a_peer_without_tcp_diag)
{
	listener_is_not_taken_for_a_peer(true);
}

PAIR_TEST(client_has_its_owner_without_tcp_diag)
{
	uint32_t uid = ~0U, nobody;
	int open, closed;

	lacks_tcp_diag = true;
	open = owner_of_peer(p->accepted, &uid);
	close(p->client);
	closed = owner_of_peer(p->accepted, &nobody);
	lacks_tcp_diag = false;
	assert_int_equal(open, 0);
	assert_int_equal(uid, getuid());
	assert_int_equal(closed, -ENOENT);
}

/* The client's addresses are those of IPv4 in the form of IPv6. */
static void look_at_client_of_ipv6(bool lacks)
{
	struct sockaddr_in6 to = {
		.sin6_family = AF_INET6,
		.sin6_addr = { { { [10] = 255, [11] = 255, [12] = 127, [15] = 1 } } },
	};
	uint16_t port;
	int fd, accepted, listener = listen_at(0, &port);
	uint32_t uid = ~0U;

	to.sin6_port = htons(port);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		skip();
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	lacks_tcp_diag = lacks;
	assert_int_equal(owner_of_peer(accepted, &uid), 0);
	lacks_tcp_diag = false;
	assert_int_equal(uid, getuid());
	close(fd);
	close(accepted);
	close(listener);
}

TEST(client_of_ipv6_has_its_owner_without_tcp_diag)
{
	look_at_client_of_ipv6(true);
}

/* ---- with it ---- */

PAIR_TEST(client_has_its_owner)
{
	uint32_t uid = ~0U;

	assert_int_equal(owner_of_peer(p->accepted, &uid), 0);
	assert_int_equal(uid, getuid());
	close(p->client);
}

static int find_holder(struct pair *p, pid_t near, bool all)
{
	struct holder_question q = { .uid = getuid(), .near = near, .all = all }, read;
	unsigned char bytes[HOLDER_BYTES];

	assert_int_equal(owner_note_peer(p->accepted, &q.peer), 0);
	holder_pack(&q, bytes);
	holder_unpack(bytes, q.uid, &read);
	return holder_find(&read);
}

/* Nothing is known of such a process: not that it lacks the socket. */
TEST(process_of_another_user_is_not_looked_at)
{
	struct pair p;
	pid_t child;
	char byte;
	int ends[2], ready[2];

	if (getuid())
		skip();
	pair_open(&p);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		close(ends[1]);
		_exit(setuid(65534) || prctl(PR_SET_DUMPABLE, 1) ||
		      write(ready[1], "", 1) != 1 ||
		      read(ends[0], &byte, 1) != 0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(find_holder(&p, child, false), -EACCES);
	assert_int_equal(find_holder(&p, 0, true), getpid());
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ends[0]);
	close(ready[0]);
	close(ready[1]);
	pair_close(&p);
}

/* A child has the socket, too. */
PAIR_TEST(client_socket_has_its_eldest_process)
{
	pid_t child;
	char byte;
	int ends[2];

	assert_int_equal(find_holder(p, 0, true), getpid());
	assert_int_equal(find_holder(p, getpid(), false), getpid());
	assert_int_equal(find_holder(p, 0, false), -ESRCH);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	assert_int_equal(find_holder(p, child, false), getpid());
	close(p->client);
	assert_int_equal(find_holder(p, child, false), child);
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(find_holder(p, getpid(), true), -ENOENT);
	close(ends[0]);
}

TEST(client_of_ipv6_has_its_owner)
{
	look_at_client_of_ipv6(false);
}

TEST(listener_is_not_taken_for_a_peer_with_it)
{
	listener_is_not_taken_for_a_peer(false);
}
