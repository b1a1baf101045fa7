/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of MPI that wait for messages. They are made of nonblocking calls and tests, which
 * match the blocking ones of other ranks.
 */
#include <stddef.h>

#include "lend/hooks.h"

struct requests {
	struct hooks *hooks;
	int n;
	void *requests, *index, *out, *statuses;
	int rc;
};

/* ---- tests ---- */

static bool test_one(void *arg)
{
	struct requests *r = arg;
	int done = 0;

	r->rc = MPI(r->hooks, Test)((lend_arg)r->requests, &done, r->statuses);
	return done || r->rc;
}

static bool test_all(void *arg)
{
	struct requests *r = arg;
	int done = 0;

	r->rc = MPI(r->hooks, Testall)(r->n, r->requests, &done, r->statuses);
	return done || r->rc;
}

static bool test_any(void *arg)
{
	struct requests *r = arg;
	int done = 0;

	r->rc = MPI(r->hooks, Testany)(r->n, r->requests, r->index, &done, r->statuses);
	return done || r->rc;
}

static bool test_some(void *arg)
{
	struct requests *r = arg;

	r->rc = MPI(r->hooks, Testsome)(r->n, r->requests, r->out, r->index, r->statuses);
	return *(int *)r->out || r->rc;
}

static int wait_for(struct requests *r, bool (*test)(void *arg))
{
	lender_wait(r->hooks->lender, test, r, 0);
	return r->rc;
}

/* ---- calls ---- */

static int on_Recv(lend_call *next, void *buf, lend_arg count, lend_arg type, lend_arg source,
		   lend_arg tag, lend_arg comm, void *status)
{
	lend_arg request = 0;
	struct requests r = { hooks_active(), .requests = &request, .statuses = status };
	int rc;

	if (!r.hooks)
		return next((lend_arg)buf, count, type, source, tag, comm, status);
	rc = MPI(r.hooks, Irecv)((lend_arg)buf, count, type, source, tag, comm, &request);
	return rc ? rc : wait_for(&r, test_one);
}

static int on_Wait(lend_call *next, void *request, void *status)
{
	struct requests r = { hooks_active(), .requests = request, .statuses = status };

	return r.hooks ? wait_for(&r, test_one) : next((lend_arg)request, status);
}

static int on_Waitall(lend_call *next, int n, void *requests, void *statuses)
{
	struct requests r = { hooks_active(), .n = n, .requests = requests,
			      .statuses = statuses };

	return r.hooks ? wait_for(&r, test_all) : next(n, requests, statuses);
}

static int on_Waitany(lend_call *next, int n, void *requests, void *index, void *status)
{
	struct requests r = { hooks_active(), .n = n, .requests = requests, .index = index,
			      .statuses = status };

	return r.hooks ? wait_for(&r, test_any) : next(n, requests, index, status);
}

static int on_Waitsome(lend_call *next, int n, void *requests, void *out, void *indices,
		       void *statuses)
{
	struct requests r = { hooks_active(), .n = n, .requests = requests, .index = indices,
			      .out = out, .statuses = statuses };

	return r.hooks ? wait_for(&r, test_some) : next(n, requests, out, indices, statuses);
}

HOOK(Recv, (void *buf, lend_arg count, lend_arg type, lend_arg source, lend_arg tag,
	    lend_arg comm, void *status),
     buf, count, type, source, tag, comm, status)
HOOK(Wait, (void *request, void *status), request, status)
HOOK(Waitall, (int n, void *requests, void *statuses), n, requests, statuses)
HOOK(Waitany, (int n, void *requests, void *index, void *status), n, requests, index, status)
HOOK(Waitsome, (int n, void *requests, void *out, void *indices, void *statuses),
     n, requests, out, indices, statuses)
