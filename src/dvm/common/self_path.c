/* SPDX-License-Identifier: BSD-3-Clause */
/* The path of the running program: self_path.h. */
#include "dvm/common/self_path.h"

#include <string.h>
#include <unistd.h>

bool own_dir(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	out[n > 0 ? n : 0] = '\0';
	slash = strrchr(out, '/');
	if (slash)
		*slash = '\0';
	return slash;
}
