/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens libpmix and looks up what is called of it. */
#include "helpers/pmixd/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The first in which the layout of what is handed over is as in later ones. */
#define OLDEST_MAJOR 4
#define OLDEST_MINOR 2
#define REMEDY \
	"install libpmix 4.2 or later (Debian: libpmix2, RPM: pmix) on this node, or set Pmi2xPmixLibrary in mpi.conf"

static const struct {
	const char *name;
	size_t at;
} calls[] = {
#define LIBRARY_LOOKUP(name) { "PMIx_" #name, offsetof(struct library, name) },
	LIBRARY_CALLS(LIBRARY_LOOKUP)
#undef LIBRARY_LOOKUP
};

/* A function of it, stored at `to`, which is a pointer to a function. */
static int look_up(void *handle, const char *name, void *to)
{
	void *found = dlsym(handle, name);

	memcpy(to, &found, sizeof(found));
	return found ? 0 : -ELIBACC;
}

static int look_up_all(struct library *l, const char *path,
		       char why[LIBRARY_WHY_MAX])
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		if (!look_up(l->handle, calls[i].name, (char *)l + calls[i].at))
			continue;
		snprintf(why, LIBRARY_WHY_MAX,
			 "%.200s cannot serve PMIx: the library has no %s; " REMEDY,
			 path, calls[i].name);
		return -ELIBACC;
	}
	return 0;
}

/* Reads the first number of "OpenPMIx 4.2.2 (PMIx Standard: ...)" or "PMIx 5.0.11". */
static bool read_version(struct library *l, int *major, int *minor)
{
	__typeof__(PMIx_Get_version) *get_version;
	const char *text;

	if (look_up(l->handle, "PMIx_Get_version", &get_version))
		return false;
	text = get_version();
	text += strcspn(text, "0123456789");
	snprintf(l->version, sizeof(l->version), "%.*s",
		 (int)strcspn(text, ", ("), text);
	return sscanf(text, "%d.%d", major, minor) == 2;
}

static int check_version(struct library *l, const char *path,
			 char why[LIBRARY_WHY_MAX])
{
	int major, minor;

	if (!read_version(l, &major, &minor)) {
		snprintf(why, LIBRARY_WHY_MAX,
			 "%.200s is not libpmix: the library reports no version; " REMEDY,
			 path);
		return -ELIBACC;
	}
	if (major > OLDEST_MAJOR ||
	    (major == OLDEST_MAJOR && minor >= OLDEST_MINOR))
		return 0;
	snprintf(why, LIBRARY_WHY_MAX, "%.200s is libpmix %s, too old; " REMEDY, path,
		 l->version);
	return -EPROTONOSUPPORT;
}

int library_open(struct library *l, const char *path, char why[LIBRARY_WHY_MAX])
{
	int rc;

	memset(l, 0, sizeof(*l));
	l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!l->handle) {
		snprintf(why, LIBRARY_WHY_MAX, "cannot load %.250s; " REMEDY,
			 dlerror());
		return -ENOENT;
	}
	rc = check_version(l, path, why);
	return rc ? rc : look_up_all(l, path, why);
}

/* Nobody reads the value that this call stores. */
void library_pass(const struct library *l, const char *nspace)
{
	pmix_proc_t proc = { .rank = 0 };
	pmix_value_t nothing = { .type = PMIX_BOOL };

	strncpy(proc.nspace, nspace, PMIX_MAX_NSLEN);
	(void)l->Store_internal(&proc, "pmi2x.passed", &nothing);
}
