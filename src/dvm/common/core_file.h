/* SPDX-License-Identifier: BSD-3-Clause */
/* No core file of a process that knows the secret of a DVM: others may see the directory. */
#pragma once

#include <sys/resource.h>

/* From now on there is none; *as_it_was is for what this process starts. */
static inline void core_file_forbid(struct rlimit *as_it_was)
{
	struct rlimit none;

	getrlimit(RLIMIT_CORE, as_it_was);
	none = *as_it_was;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_CORE, &none);
}
