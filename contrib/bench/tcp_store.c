/* SPDX-License-Identifier: BSD-3-Clause */
/* Each query is written with one system call, and its answer is read. */
#include "tcp_store.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define QUERY_MAX 4096 /* bytes */
#define RETRY_NS 20000000
#define RETRIES 3000

enum { QUERY_SET = 0, QUERY_GET = 2, QUERY_ADD = 3, QUERY_WAIT = 5 };

struct query {
	size_t len;
	unsigned char bytes[QUERY_MAX];
};

static void die(const char *what)
{
	fprintf(stderr, "TCPStore: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- connecting ---- */

static int try_to_connect(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0)
		die("socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!connect(fd, a->ai_addr, a->ai_addrlen))
		return fd;
	close(fd);
	return -1;
}

int tcp_store_connect(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	const struct timespec pause = { .tv_nsec = RETRY_NS };
	struct addrinfo *found;
	int fd;

	errno = 0;
	if (getaddrinfo(host, port, &hints, &found))
		die(host);
	for (int i = 0; (fd = try_to_connect(found)) < 0; i++) {
		if (i == RETRIES)
			die(port);
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(found);
	return fd;
}

/* ---- bytes ---- */

static void add_bytes(struct query *q, const void *data, size_t len)
{
	if (len > sizeof(q->bytes) - q->len) {
		errno = EMSGSIZE;
		die("a query");
	}
	memcpy(q->bytes + q->len, data, len);
	q->len += len;
}

static void add_number(struct query *q, uint64_t number)
{
	add_bytes(q, &number, sizeof(number));
}

static void add_item(struct query *q, const void *data, size_t len)
{
	add_number(q, len);
	add_bytes(q, data, len);
}

static struct query query(unsigned char number)
{
	return (struct query){ 1, { number } };
}

static void send_query(int fd, const struct query *q)
{
	size_t sent = 0;

	while (sent < q->len) {
		ssize_t n = send(fd, q->bytes + sent, q->len - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			die("send");
		sent += n > 0 ? (size_t)n : 0;
	}
}

static void receive(int fd, void *to, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(fd, (char *)to + got, len - got, 0);

		if (n == 0 || (n < 0 && errno != EINTR))
			die("recv");
		got += n > 0 ? (size_t)n : 0;
	}
}

/* ---- queries ---- */

void tcp_store_set(int fd, const char *key, const void *value, size_t len)
{
	struct query q = query(QUERY_SET);

	add_item(&q, key, strlen(key));
	add_item(&q, value, len);
	send_query(fd, &q);
}

int64_t tcp_store_add(int fd, const char *key, int64_t number)
{
	struct query q = query(QUERY_ADD);
	int64_t sum;

	add_item(&q, key, strlen(key));
	add_number(&q, (uint64_t)number);
	send_query(fd, &q);
	receive(fd, &sum, sizeof(sum));
	return sum;
}

void tcp_store_wait(int fd, const char *key)
{
	struct query q = query(QUERY_WAIT);
	unsigned char answer;

	add_number(&q, 1);
	add_item(&q, key, strlen(key));
	send_query(fd, &q);
	receive(fd, &answer, sizeof(answer));
}

size_t tcp_store_get(int fd, const char *key, void *value, size_t room)
{
	struct query q = query(QUERY_GET);
	uint64_t len;

	add_item(&q, key, strlen(key));
	send_query(fd, &q);
	receive(fd, &len, sizeof(len));
	if (len > room) {
		errno = EMSGSIZE;
		die("an answer");
	}
	receive(fd, value, len);
	return len;
}
