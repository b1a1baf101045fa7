/* SPDX-License-Identifier: BSD-3-Clause */
/* When calls of MPI lend: in the thread of MPI_Init, outside of parallel regions. */
#include "lend/hooks.h"

#include <dlfcn.h>
#include <stddef.h>

#include "lend/calls.h"
#include "lend/real.h"

#define THREAD_MULTIPLE 3

static struct hooks hooks;
static bool begun;
static _Thread_local bool is_initial;
static _Thread_local int depth; /* of replaced calls that MPI's own ones are in */

lend_call *hooks_find(lend_call **cached, const char *name, const void *caller)
{
	if (!*cached)
		*cached = (lend_call *)lend_need(name, caller);
	return *cached;
}

struct hooks *hooks_begun(void)
{
	return begun ? &hooks : NULL;
}

struct hooks *hooks_active(void)
{
	if (!is_initial || depth || !atomic_load(&hooks.lender->active) ||
	    (hooks.in_parallel && hooks.in_parallel()))
		return NULL;
	return &hooks;
}

void hooks_enter(void)
{
	depth++;
}

void hooks_leave(void)
{
	depth--;
}

void calls_begin(struct lender *l, const struct lend_abi *abi, const void *caller)
{
	int provided = THREAD_MULTIPLE;

	if (!atomic_load(&l->active))
		return;
	hooks = (struct hooks){ .lender = l, .abi = *abi, .program = caller };
	MPI(&hooks, Query_thread)((lend_arg)&provided);
	if (provided == THREAD_MULTIPLE) {
		lender_stop(l);
		return;
	}
	hooks.in_parallel = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_in_parallel");
	begun = true;
	is_initial = true;
}
