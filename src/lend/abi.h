/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants of the program's MPI, which differ between MPICH and Open MPI. */
#ifndef PMI2X_LEND_ABI_H
#define PMI2X_LEND_ABI_H

#include <stdbool.h>

/* Arguments of MPI pass as words: a number, a handle or an address. */
typedef long lend_arg;

struct lend_abi {
	bool short_handles; /* 32 bits; the upper half of such an argument means nothing */
	lend_arg comm_world, comm_self, comm_null;
	lend_arg any_source, any_tag;
	lend_arg errors_return; /* 0: tests report errors as blocking calls do */
	void *ignore; /* MPI_STATUS_IGNORE */
};

/* The constants of the MPI that a caller of MPI_Init uses. False: an MPI that is not known. */
bool lend_abi_find(struct lend_abi *abi, const void *caller);
/* A handle as an argument, and one at an address. */
lend_arg lend_abi_handle(const struct lend_abi *abi, lend_arg arg);
lend_arg lend_abi_handle_at(const struct lend_abi *abi, const void *at);

#endif
