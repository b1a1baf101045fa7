/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks connections of 127.0.0.1 up among the kernel's sockets. */
#include "starter/knock.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512
#define ESTABLISHED 1 /* as the kernel numbers it there */

struct knocks {
	bool own;
	unsigned int others;
};

/* The other end of a connection to that port: its owner is who connects. */
static void count(struct knocks *k, const char *line, uint16_t port, uid_t uid)
{
	unsigned int address, to, state, owner;

	if (sscanf(line, "%*d: %*8X:%*4X %8X:%4X %2X %*s %*s %*s %u", &address,
		   &to, &state, &owner) != 4 ||
	    address != htonl(INADDR_LOOPBACK) || to != port ||
	    state != ESTABLISHED)
		return;
	if (owner == uid)
		k->own = true;
	else
		k->others++;
}

static bool read_connections(struct knocks *k, uint16_t port, uid_t uid)
{
	FILE *file = fopen("/proc/net/tcp", "re");
	char line[LINE_MAX_BYTES];

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		count(k, line, port, uid);
	fclose(file);
	return true;
}

bool knock_of(int listener, uint16_t port, uid_t uid)
{
	struct knocks k = { .own = false };
	int fd;

	if (!read_connections(&k, port, uid) || k.own)
		return true;
	/*
	 * They are accepted in the order in which they came, so as many as were there
	 * are others'. One at least: it has hung up.
	 */
	do {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			close(fd);
	} while (fd >= 0 && k.others && --k.others);
	return false;
}
