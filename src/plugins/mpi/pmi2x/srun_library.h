/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens srun's end, which is a library of its own. */
#pragma once

#include "srun/library.h"

/*
 * The table of the library at `path`, an absolute one; it stays open for the life of
 * the process. 0, or -ELIBACC with a line that names the path and the remedy: there is
 * none, or it has another interface. In srun only.
 */
int srun_library_open(const struct srun_library **out, const char *path,
			  const struct log_hook *log);
