/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that has set no handler ends at the first error, whichever handler reports it. */
#include "lend/errors.h"

#include <stddef.h>

static bool is_set;  /* the program has set a handler */
static bool of_self; /* that of MPI_COMM_SELF, whose errors otherwise go to MPI_COMM_WORLD */

bool errors_are_handled(void)
{
	return is_set;
}

static lend_arg exchange(struct hooks *h, lend_arg comm)
{
	lend_arg before = 0;

	MPI(h, Comm_get_errhandler)(comm, &before);
	MPI(h, Comm_set_errhandler)(comm, h->abi.errors_return);
	return before;
}

static void restore(struct hooks *h, lend_arg comm, lend_arg handler)
{
	MPI(h, Comm_set_errhandler)(comm, lend_abi_handle(&h->abi, handler));
	MPI(h, Errhandler_free)((lend_arg)&handler);
}

struct errors errors_begin(struct hooks *h)
{
	struct errors e = { .held = is_set && h->abi.errors_return };

	if (!e.held)
		return e;
	e.world = exchange(h, h->abi.comm_world);
	if (of_self)
		e.self = exchange(h, h->abi.comm_self);
	return e;
}

int errors_end(struct hooks *h, const struct errors *e, lend_arg comm, int rc)
{
	if (!e->held)
		return rc;
	restore(h, h->abi.comm_world, e->world);
	if (e->self)
		restore(h, h->abi.comm_self, e->self);
	if (rc)
		MPI(h, Comm_call_errhandler)(comm, rc);
	return rc;
}

static int on_Comm_set_errhandler(lend_call *next, lend_arg comm, lend_arg handler)
{
	struct hooks *h = hooks_begun();

	if (h) {
		is_set = true;
		of_self |= lend_abi_handle(&h->abi, comm) == h->abi.comm_self;
	}
	return next(comm, handler);
}

/* MPI 1 has this name. */
static int on_Errhandler_set(lend_call *next, lend_arg comm, lend_arg handler)
{
	return on_Comm_set_errhandler(next, comm, handler);
}

HOOK(Comm_set_errhandler, (lend_arg comm, lend_arg handler), comm, handler)
HOOK(Errhandler_set, (lend_arg comm, lend_arg handler), comm, handler)
