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
	const uint32_t *slots; /* of the ranks to wait for */
	uint32_t n;
	bool in_time;
};

static bool has_all(const struct arrival *a)
{
	struct lender *l = a->hooks->lender;

	return arrivals_complete(&l->arrivals, &l->ledger, a->comm->group, a->calls,
				 a->slots, a->n);
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

/* This rank has come to a collective. Without a->comm nothing is counted. */
static struct arrival come(lend_arg handle)
{
	struct arrival a = { hooks_active(), .in_time = true };
	struct lender *l;

	a.comm = a.hooks ? comms_find(a.hooks, handle) : NULL;
	hooks_enter();
	if (!a.comm)
		return a;
	l = a.hooks->lender;
	a.calls = arrivals_enter(&l->arrivals, a.comm->group, l->slot);
	lender_call(l);
	return a;
}

static void wait_for(struct arrival *a, const uint32_t *slots, uint32_t n)
{
	a->slots = slots;
	a->n = n;
	a->in_time = lender_wait(a->hooks->lender, test_arrivals, a, LIMIT_MS);
}

/* `count` is that of the data. Without data MPI may return before the other ranks have come. */
static bool waits(const struct arrival *a, lend_arg count)
{
	return a->comm && (int)count;
}

/* Before a collective that synchronizes. */
static struct arrival meet(lend_arg count, lend_arg handle)
{
	struct arrival a = come(handle);

	if (waits(&a, count))
		wait_for(&a, a.comm->slots, a.comm->n);
	return a;
}

/* Before a collective whose data come from the root: the others need the root only. */
static struct arrival meet_from(lend_arg count, lend_arg root, lend_arg handle)
{
	struct arrival a = come(handle);
	const uint32_t *slot = waits(&a, count) ? comms_slot(a.comm, root) : NULL;

	if (slot && *slot != a.hooks->lender->slot)
		wait_for(&a, slot, 1);
	return a;
}

/* Before one whose data go to the root: only the root needs the others. */
static struct arrival meet_at(lend_arg count, lend_arg root, lend_arg handle)
{
	struct arrival a = come(handle);
	const uint32_t *slot = waits(&a, count) ? comms_slot(a.comm, root) : NULL;

	if (slot && *slot == a.hooks->lender->slot)
		wait_for(&a, a.comm->slots, a.comm->n);
	return a;
}

/*
 * Behind it. The ranks that were waited for have come, so a count that is still behind stays
 * so: a rank has not counted all of its calls. This rank stops counting on the communicator.
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
	struct arrival a = meet(1, comm);

	return part(&a, next(comm));
}

static int on_Allreduce(lend_call *next, const void *in, void *out, lend_arg count,
			lend_arg type, lend_arg op, lend_arg comm)
{
	struct arrival a = meet(count, comm);

	return part(&a, next((lend_arg)in, out, count, type, op, comm));
}

static int on_Bcast(lend_call *next, void *buf, lend_arg count, lend_arg type, lend_arg root,
		    lend_arg comm)
{
	struct arrival a = meet_from(count, root, comm);

	return part(&a, next((lend_arg)buf, count, type, root, comm));
}

static int on_Reduce(lend_call *next, const void *in, void *out, lend_arg count, lend_arg type,
		     lend_arg op, lend_arg root, lend_arg comm)
{
	struct arrival a = meet_at(count, root, comm);

	return part(&a, next((lend_arg)in, out, count, type, op, root, comm));
}

static int on_Gather(lend_call *next, const void *in, lend_arg nin, lend_arg in_type, void *out,
		     lend_arg nout, lend_arg out_type, lend_arg root, lend_arg comm)
{
	struct arrival a = meet_at(nout, root, comm);

	return part(&a, next((lend_arg)in, nin, in_type, out, nout, out_type, root, comm));
}

static int on_Scatter(lend_call *next, const void *in, lend_arg nin, lend_arg in_type, void *out,
		      lend_arg nout, lend_arg out_type, lend_arg root, lend_arg comm)
{
	struct arrival a = meet_from(nout, root, comm);

	return part(&a, next((lend_arg)in, nin, in_type, out, nout, out_type, root, comm));
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

/* The outermost call of MPI_Finalize and PMPI_Finalize finds the rank active. */
static int finalize(void *next)
{
	struct hooks *h = hooks_begun();
	bool ends = h && atomic_load(&h->lender->active);
	int rc;

	if (ends)
		lender_stop(h->lender);
	rc = ((int (*)(void))next)();
	if (ends)
		lender_report(h->lender);
	return rc;
}

HOOK(Barrier, (lend_arg comm), comm)
HOOK(Allreduce, (const void *in, void *out, lend_arg count, lend_arg type, lend_arg op,
		 lend_arg comm),
     in, out, count, type, op, comm)
HOOK(Bcast, (void *buf, lend_arg count, lend_arg type, lend_arg root, lend_arg comm),
     buf, count, type, root, comm)
HOOK(Reduce, (const void *in, void *out, lend_arg count, lend_arg type, lend_arg op,
	      lend_arg root, lend_arg comm),
     in, out, count, type, op, root, comm)
HOOK(Gather, (const void *in, lend_arg nin, lend_arg in_type, void *out, lend_arg nout,
	      lend_arg out_type, lend_arg root, lend_arg comm),
     in, nin, in_type, out, nout, out_type, root, comm)
HOOK(Scatter, (const void *in, lend_arg nin, lend_arg in_type, void *out, lend_arg nout,
	       lend_arg out_type, lend_arg root, lend_arg comm),
     in, nin, in_type, out, nout, out_type, root, comm)
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
