/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of MPI by name. */
#include "lend/real.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* MPI that Python opens is not among the program's libraries, but among its caller's. */
void *lend_real(const char *name, const void *caller)
{
	void *found = dlsym(RTLD_NEXT, name), *library;
	Dl_info info;

	if (found || !dladdr(caller, &info) || !info.dli_fname)
		return found;
	library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	found = library ? dlsym(library, name) : NULL;
	if (library)
		dlclose(library);
	return found;
}

void *lend_need(const char *name, const void *caller)
{
	void *real = lend_real(name, caller);

	if (real)
		return real;
	fprintf(stderr, "PMI2X_LEND: %s of the MPI library is not found: unset PMI2X_LEND\n",
		name);
	abort();
}
