/* SPDX-License-Identifier: BSD-3-Clause */
/* The file in which clients on other nodes find the head. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/head/head_main.h"

static int write_whole(const char *path, const char *text)
{
	size_t len = strlen(text);
	int rc = 0, fd;

	unlink(path); /* of a head that was killed */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		rc = -ENOSPC;
	if (!rc && fsync(fd) < 0) /* otherwise the name may reach the disk without the text */
		rc = -errno;
	if (close(fd) < 0) /* NFS says only here that there is no room */
		rc = rc ? rc : -errno;
	return rc;
}

/* Nobody reads half of it. */
static int replace(const struct head_main *h, const char *file, const char *text)
{
	char path[PATH_MAX];
	int rc;

	if ((size_t)snprintf(path, sizeof(path), "%s.%s.new", file,
			     h->welcome.dvm) >= sizeof(path))
		return -ENAMETOOLONG;
	rc = write_whole(path, text);
	if (!rc && rename(path, file) < 0)
		rc = -errno;
	if (rc)
		unlink(path);
	return rc;
}

int address_write(const struct head_main *h, const char *file, char *text)
{
	int rc = text ? replace(h, file, text) : -ENOMEM;

	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
	return rc;
}

void address_publish(struct head_main *h)
{
	int rc;

	if (!h->options.address)
		return;
	rc = address_write(h, h->options.address, welcome_format(&h->welcome));
	if (rc)
		head_say(h, "note clients on other nodes will not find this DVM: %s cannot be written: %s",
			  h->options.address, strerror(-rc));
	h->published = !rc;
}

void address_withdraw(struct head_main *h)
{
	if (h->published && !h->journal.superseded)
		unlink(h->options.address);
	h->published = false;
}
