/* SPDX-License-Identifier: BSD-3-Clause */
/* Which MPI a program uses: Open MPI's handles are addresses of symbols, MPICH's are numbers. */
#include "lend/abi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "lend/real.h"

#define LIBRARY_TEXT_MAX 8192 /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH */

static const struct lend_abi mpich = {
	.short_handles = true,
	.comm_world = 0x44000000L,
	.comm_self = 0x44000001L,
	.comm_null = 0x04000000L,
	.any_source = -2,
	.any_tag = -1,
	.errors_return = 0x54000001L,
	.ignore = (void *)1,
};

static bool is_mpich(const void *caller)
{
	int (*get)(char *, int *) =
		(int (*)(char *, int *))lend_real("PMPI_Get_library_version", caller);
	char text[LIBRARY_TEXT_MAX] = "";
	int len;

	return get && !get(text, &len) && !strncmp(text, "MPICH", strlen("MPICH"));
}

/* The program may have a copy of an object of the library, which the library uses, too. */
static void *object(const char *name, const void *caller)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	return found ? found : lend_real(name, caller);
}

bool lend_abi_find(struct lend_abi *abi, const void *caller)
{
	void *world = object("ompi_mpi_comm_world", caller);
	void *null = object("ompi_mpi_comm_null", caller);

	if (!world || !null) {
		*abi = mpich;
		return is_mpich(caller);
	}
	*abi = (struct lend_abi){
		.comm_world = (lend_arg)world,
		.comm_null = (lend_arg)null,
		.any_source = -1,
		.any_tag = -1,
	};
	return true;
}

lend_arg lend_abi_handle(const struct lend_abi *abi, lend_arg arg)
{
	return abi->short_handles ? (int)arg : arg;
}

lend_arg lend_abi_handle_at(const struct lend_abi *abi, const void *at)
{
	return abi->short_handles ? *(const int *)at : *(const lend_arg *)at;
}
