/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The replaced calls of MPI share these. MPI_X and PMPI_X are both replaced, because Fortran of
 * Open MPI and profilers call PMPI_X. The outermost of both counts.
 */
#ifndef PMI2X_LEND_HOOKS_H
#define PMI2X_LEND_HOOKS_H

#include "lend/abi.h"
#include "lend/lender.h"

typedef int lend_call(lend_arg, ...);

struct hooks {
	struct lender *lender;
	struct lend_abi abi;
	const void *program;      /* the caller of MPI_Init */
	int (*in_parallel)(void); /* NULL: no OpenMP */
};

/* NULL: this call does not lend, and MPI's own one is made. */
struct hooks *hooks_active(void);
/* The rank has begun to lend, maybe some time ago. NULL: it has not. */
struct hooks *hooks_begun(void);
/* Between both, calls of this thread do not lend: MPI or a profiler makes them. */
void hooks_enter(void);
void hooks_leave(void);

lend_call *hooks_find(lend_call **cached, const char *name, const void *caller);

/* MPI's own function, behind profilers. */
#define MPI(hooks, name) \
	({ static lend_call *cached; hooks_find(&cached, "PMPI_" #name, (hooks)->program); })

/*
 * MPI_X and PMPI_X with these parameters: both call on_X(the next such function, arguments).
 */
#define HOOK(name, params, ...)                                                             \
	__attribute__((visibility("default"))) int MPI_##name params;                       \
	__attribute__((visibility("default"))) int PMPI_##name params;                      \
	int MPI_##name params                                                               \
	{                                                                                   \
		static lend_call *cached;                                                   \
		return on_##name(hooks_find(&cached, "MPI_" #name,                          \
					    __builtin_return_address(0)), __VA_ARGS__);     \
	}                                                                                   \
	int PMPI_##name params                                                              \
	{                                                                                   \
		static lend_call *cached;                                                   \
		return on_##name(hooks_find(&cached, "PMPI_" #name,                         \
					    __builtin_return_address(0)), __VA_ARGS__);     \
	}

#endif
