/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens srun's end, and checks that it is what this plugin was built for. */
#include "srun_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

int srun_library_open(const struct srun_library **out, const char *path,
			  const struct log_hook *log)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct srun_library *l =
		library ? dlsym(library, SRUN_LIBRARY_SYMBOL) : NULL;

	if (!l) {
		log_error(log, "srun cannot use its part of pmi2x (%s): install %s on this host, of the same release as mpi_pmi2x.so, and the libraries that it needs",
			  dlerror(), path);
		return -ELIBACC;
	}
	if (l->interface != SRUN_LIBRARY_INTERFACE) {
		log_error(log, "%s has interface %u, and mpi_pmi2x.so needs %u: install both from the same release of pmi2x on this host",
			  path, l->interface, SRUN_LIBRARY_INTERFACE);
		return -ELIBACC;
	}
	*out = l;
	return 0;
}
