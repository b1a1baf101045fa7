/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives. Ranks count arrivals before MPI's own call, and drive MPI's progress meanwhile.
 */
#include <stddef.h>

#include "lend/comms.h"
#include "lend/real.h"

#define LIMIT_MS 1000

struct arrival {
	struct hooks *hooks;
	struct comm *comm;
	uint32_t calls;
	bool in_time;
};

static bool has_all(const struct arrival *a)
{
	struct lender *l = a->hooks->lender;

	return arrivals_complete(&l->arrivals, &l->ledger, a->comm->group, a->calls,
				 a->comm->slots, a->comm->n);
}

static bool test_arrivals(void *arg)
{
	struct arrival *a = arg;
	struct lend_abi *abi = &a->hooks->abi;
	int flag;

	if (has_all(a))
		return true;
	MPI(a->hooks, Iprobe)(abi->any_source, abi->any_tag, abi->comm_world, &flag,
			      abi->ignore);
	return false;
}

/* Before a collective that synchronizes. */
static struct arrival meet(lend_arg handle)
{
	struct arrival a = { hooks_active(), .in_time = true };
	struct lender *l;

	a.comm = a.hooks ? comms_find(a.hooks, handle) : NULL;
	hooks_enter();
	if (!a.comm)
		return a;
	l = a.hooks->lender;
	a.calls = arrivals_enter(&l->arrivals, a.comm->group, l->slot);
	a.in_time = lender_wait(l, test_arrivals, &a, LIMIT_MS);
	return a;
}

/*
 * Behind it. All members have come, so a count that is still behind stays so: a rank has not
 * counted all of its calls. This rank stops counting on the communicator.
 */
static int part(const struct arrival *a, int rc)
{
	hooks_leave();
	if (!a->in_time && !has_all(a))
		a->comm->group = ARRIVALS_NONE;
	return rc;
}

static int on_Barrier(lend_call *next, lend_arg comm)
{
	struct arrival a = meet(comm);

	return part(&a, next(comm));
}

static int on_Allreduce(lend_call *next, const void *in, void *out, lend_arg count,
			lend_arg type, lend_arg op, lend_arg comm)
{
	struct arrival a = meet(comm);

	return part(&a, next((lend_arg)in, out, count, type, op, comm));
}

/* ---- ends ---- */

static int on_Comm_free(lend_call *next, void *comm)
{
	if (hooks_begun())
		comms_forget(hooks_begun(), comm);
	return next((lend_arg)comm);
}

static int on_Comm_disconnect(lend_call *next, void *comm)
{
	return on_Comm_free(next, comm);
}

static int finalize(void *next)
{
	if (hooks_begun())
		lender_stop(hooks_begun()->lender);
	return ((int (*)(void))next)();
}

HOOK(Barrier, (lend_arg comm), comm)
HOOK(Allreduce, (const void *in, void *out, lend_arg count, lend_arg type, lend_arg op,
		 lend_arg comm),
     in, out, count, type, op, comm)
HOOK(Comm_free, (void *comm), comm)
HOOK(Comm_disconnect, (void *comm), comm)

__attribute__((visibility("default"))) int MPI_Finalize(void);
__attribute__((visibility("default"))) int PMPI_Finalize(void);

int MPI_Finalize(void)
{
	return finalize(lend_need("MPI_Finalize", __builtin_return_address(0)));
}

int PMPI_Finalize(void)
{
	return finalize(lend_need("PMPI_Finalize", __builtin_return_address(0)));
}
