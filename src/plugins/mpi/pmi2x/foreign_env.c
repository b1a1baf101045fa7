/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variables that PMIx servers of all releases, mpi/pmix and PRRTE set for each process.
 * Variables that users set for libpmix, PMIX_MCA_* first of all, are not among them.
 */
#include "foreign_env.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const char *const names[] = {
	"PMIX_BFROP_BUFFER_TYPE",
	"PMIX_GDS_MODULE",
	"PMIX_HOSTNAME",
	"PMIX_ID",
	"PMIX_KEEPALIVE_PIPE",
	"PMIX_NAMESPACE",
	"PMIX_PTL_MODULE",
	"PMIX_RANK",
	"PMIX_SECURITY_MODE",
	"PMIX_SERVER_NSPACE",
	"PMIX_SERVER_RANK",
	"PMIX_SERVER_TMPDIR",
	"PMIX_SYSTEM_TMPDIR",
	"PMIX_VERSION",
};

/* With the version of a protocol, or of a store, behind it. */
static const char *const prefixes[] = {
	"PMIX_DSTORE_",
	"PMIX_SERVER_URI",
};

static bool is_foreign(const char *entry)
{
	size_t len = strcspn(entry, "=");

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(entry, prefixes[i], strlen(prefixes[i])))
			return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == len && !strncmp(entry, names[i], len))
			return true;
	return false;
}

void foreign_env_remove(char **env)
{
	char **to = env, **from;

	for (from = env; *from; from++)
		if (!is_foreign(*from))
			*to++ = *from;
	/* All of the rest: Slurm adds behind the last that is not NULL. */
	while (to < from)
		*to++ = NULL;
}
