/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a command of Slurm: environ.h. */
#include "dvm/common/environ.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char **environ_filter(bool (*keep)(const char *variable))
{
	size_t n = 0, kept = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 1, sizeof(*env));
	for (size_t i = 0; env && i < n; i++)
		if (keep(environ[i]))
			env[kept++] = environ[i];
	return env;
}

bool environ_is_not_of_squeue(const char *variable)
{
	return strncmp(variable, "SQUEUE_", 7);
}
