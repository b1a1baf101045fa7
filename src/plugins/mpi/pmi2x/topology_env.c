/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine whose topology the environment describes. */
#include "topology_env.h"

#include <stddef.h>
#include <string.h>

/* In all releases of hwloc; each wins over what the machine says. */
static const char *const choices[] = {
	TOPOLOGY_ENV_FILE, "HWLOC_CPUID_PATH", "HWLOC_FSROOT", "HWLOC_SYNTHETIC",
};

/* The value when the entry is of this variable; else NULL. */
static const char *value_of(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(entry, name, len) && entry[len] == '=' ?
		       entry + len + 1 : NULL;
}

static bool is_ours(const char *entry)
{
	const char *path = value_of(entry, TOPOLOGY_ENV_FILE);
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && !strncmp(slash + 1, TOPOLOGY_FILE_PREFIX,
				 strlen(TOPOLOGY_FILE_PREFIX));
}

void topology_env_remove(char **env)
{
	char **to = env, **from;
	bool ours = false;

	for (from = env; *from; from++)
		ours |= is_ours(*from);
	if (!ours)
		return;
	for (from = env; *from; from++)
		if (!value_of(*from, TOPOLOGY_ENV_FILE) &&
		    !value_of(*from, TOPOLOGY_ENV_HERE))
			*to++ = *from;
	/* All of the rest: Slurm adds behind the last that is not NULL. */
	while (to < from)
		*to++ = NULL;
}

bool topology_env_is_chosen(char *const *env)
{
	for (; *env; env++)
		for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++)
			if (value_of(*env, choices[i]))
				return true;
	return false;
}
