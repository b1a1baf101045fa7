/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for libpmix, and tells its release by the number in its file's name. */
#include "supervisor/pmix_library.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "libpmix.so.2"

static const char *const directories[] = {
	"/usr/lib/" PMIX_MULTIARCH, "/usr/lib64", "/usr/lib",
	"/usr/local/lib64", "/usr/local/lib",
};

/* libpmix.so.2.MINOR.PATCH: the first such number of a release of OpenPMIx. */
static const struct {
	unsigned int minor, release;
} releases[] = {
	{ 23, 6 }, { 13, 5 }, { 6, 4 }, { 0, 3 },
};

static unsigned int release_of(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned int minor;

	if (!name || sscanf(name, "/" NAME ".%u", &minor) != 1)
		return 0;
	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++)
		if (minor >= releases[i].minor)
			return releases[i].release;
	return 0;
}

static int take(struct pmix_library *l, const char *path)
{
	if (!realpath(path, l->path)) {
		l->path[0] = '\0';
		return -ENOENT;
	}
	l->release = release_of(l->path);
	return l->release == 3 ? -EPROTONOSUPPORT : 0;
}

int pmix_library_find(struct pmix_library *l, const char *wanted)
{
	char path[PATH_MAX];
	int rc = -ENOENT;

	if (wanted[0])
		return take(l, wanted);
	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]) &&
	     rc == -ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/" NAME, directories[i]);
		rc = take(l, path);
	}
	return rc;
}
