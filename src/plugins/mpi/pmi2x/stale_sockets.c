/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removes unix sockets that a killed process has left. */
#include "stale_sockets.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Nobody has it open. A datagram socket cannot connect to a stream socket, so a
 * living owner gets no connection to accept: the error tells the two apart.
 */
static bool is_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool stale;

	if (fd < 0)
		return false;
	stale = connect(fd, (const struct sockaddr *)address,
			sizeof(*address)) < 0 && errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static void check(const char *dir, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s",
			 dir, name);

	if (n > 0 && (size_t)n < sizeof(address.sun_path) && is_stale(&address))
		unlink(address.sun_path);
}

void stale_sockets_remove(const char *dir, const char *prefix)
{
	size_t len = strlen(prefix);
	DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d)))
		if (strncmp(e->d_name, prefix, len) == 0 &&
		    (e->d_type == DT_SOCK || e->d_type == DT_UNKNOWN))
			check(dir, e->d_name);
	closedir(d);
}
