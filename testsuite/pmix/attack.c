/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents and clients that mean no good. */
#include "attack.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS 200 /* to each node */
#define STRANGER 65534  /* a user */

static bool is(const struct host *h, const char *attack)
{
	return h->options->attack && !strcmp(h->options->attack, attack);
}

void attack_start(struct host *h, struct node *n)
{
	static const char garbage[64] = "\x20\0\0\0garbage";
	const struct pmix_msg nspace = { .type = PMIX_MSG_NSPACE, .nspace = 1,
					 .data = garbage, .len = sizeof(garbage) };

	if (is(h, "garbage"))
		(void)send(n->link.fd, garbage, sizeof(garbage), MSG_NOSIGNAL);
	else if (is(h, "nspace"))
		(void)link_send(&n->link, &nspace);
	else if (is(h, "agent-ends"))
		shutdown(n->link.fd, SHUT_WR);
	else if (is(h, "host-ends"))
		shutdown(n->host, SHUT_WR);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		perror("connect");
	return fd;
}

static void make_noise(uint16_t port)
{
	char words[] = "GET / HTTP/1.0\r\n\r\n";

	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = connect_to(port);

		memset(words, i, (size_t)i % sizeof(words));
		if (i % 3 && send(fd, words, sizeof(words), MSG_NOSIGNAL) < 0)
			perror("send");
		if (i % 3 != 1)
			shutdown(fd, SHUT_WR);
	}
}

/* True: the other end closes each connection without an answer. */
static bool are_sent_away(uint16_t port)
{
	char byte;

	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = connect_to(port);

		if (recv(fd, &byte, 1, 0) > 0)
			return false;
		close(fd);
	}
	return true;
}

static void send_strangers(struct host *h, uint16_t port)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(setresuid(STRANGER, STRANGER, STRANGER) || !are_sent_away(port));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		printf("a stranger is let in\n");
		host_end(h, 4);
	}
}

void attack_listeners(struct host *h)
{
	for (uint32_t p = 0; p < h->options->real; p++) {
		if (is(h, "noise"))
			make_noise(h->nodes[p].port);
		else if (is(h, "strangers"))
			send_strangers(h, h->nodes[p].port);
	}
}
