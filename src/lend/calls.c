/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of MPI that wait for messages. They are made of nonblocking calls and tests, which
 * match the blocking ones of other ranks.
 */
#include <stddef.h>
#include <stdint.h>

#include "lend/errors.h"
#include "lend/hooks.h"

#define AT_ONCE_MAX 1024 /* bytes */

struct requests {
	struct hooks *hooks;
	int n;
	void *requests, *index, *out, *statuses;
	int done; /* requests that have ended, of Waitall */
	int rc;
};

/* A message that is sent, and one that is received. */
struct exchange {
	struct hooks *hooks;
	lend_arg sends, receives; /* requests; a short handle fills the lower half */
	void *status;             /* of the received one */
	int sent, received;       /* 1: that request has ended */
	int rc;
};

struct probe {
	struct hooks *hooks;
	lend_arg source, tag, comm;
	void *message, *status; /* `message` of Mprobe */
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

/* Nothing of the requests changes. Handles are short. */
static bool test_each(void *arg)
{
	struct requests *r = arg;
	const int *requests = r->requests;
	int done, rc;

	while (r->done < r->n) {
		done = 0;
		rc = MPI(r->hooks, Request_get_status)(requests[r->done], &done,
						       r->hooks->abi.ignore);
		if (!done && !rc)
			return false;
		r->done++;
	}
	return true;
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

static bool test_exchange(void *arg)
{
	struct exchange *e = arg;
	int rc = 0;

	if (!e->received)
		rc = MPI(e->hooks, Test)((lend_arg)&e->receives, &e->received, e->status);
	e->rc = rc ? rc : e->rc;
	e->received |= rc != 0;
	rc = 0;
	if (!e->sent)
		rc = MPI(e->hooks, Test)((lend_arg)&e->sends, &e->sent, e->hooks->abi.ignore);
	e->rc = rc ? rc : e->rc;
	e->sent |= rc != 0;
	return e->sent && e->received;
}

static bool test_probe(void *arg)
{
	struct probe *p = arg;
	int found = 0;

	p->rc = MPI(p->hooks, Iprobe)(p->source, p->tag, p->comm, &found, p->status);
	return found || p->rc;
}

static bool test_mprobe(void *arg)
{
	struct probe *p = arg;
	int found = 0;

	p->rc = MPI(p->hooks, Improbe)(p->source, p->tag, p->comm, &found, p->message,
				       p->status);
	return found || p->rc;
}

static int wait_for(struct requests *r, bool (*test)(void *arg))
{
	lender_wait(r->hooks->lender, test, r, 0);
	return r->rc;
}

/* Errors come as those of a call on this communicator. */
static int wait_on(struct requests *r, lend_arg comm)
{
	struct errors e = errors_begin(r->hooks);

	return errors_end(r->hooks, &e, comm, wait_for(r, test_one));
}

/* ---- waits for requests ---- */

static int on_Wait(lend_call *next, void *request, void *status)
{
	struct requests r = { hooks_active(), .requests = request, .statuses = status };

	return r.hooks ? wait_for(&r, test_one) : next((lend_arg)request, status);
}

/* MPI_Testall of MPICH returns an error before the other requests have ended. */
static int wait_all(struct requests *r)
{
	struct errors e = errors_begin(r->hooks);

	if (!e.held)
		return wait_for(r, test_all);
	lender_wait(r->hooks->lender, test_each, r, 0);
	errors_end(r->hooks, &e, r->hooks->abi.comm_world, 0);
	return MPI(r->hooks, Waitall)(r->n, r->requests, r->statuses);
}

static int on_Waitall(lend_call *next, int n, void *requests, void *statuses)
{
	struct requests r = { hooks_active(), .n = n, .requests = requests,
			      .statuses = statuses };

	return r.hooks ? wait_all(&r) : next(n, requests, statuses);
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

/* ---- messages ---- */

static int on_Recv(lend_call *next, void *buf, lend_arg count, lend_arg type, lend_arg source,
		   lend_arg tag, lend_arg comm, void *status)
{
	lend_arg request = 0;
	struct requests r = { hooks_active(), .requests = &request, .statuses = status };
	int rc;

	if (!r.hooks)
		return next((lend_arg)buf, count, type, source, tag, comm, status);
	rc = MPI(r.hooks, Irecv)((lend_arg)buf, count, type, source, tag, comm, &request);
	return rc ? rc : wait_on(&r, comm);
}

static int send_by(struct hooks *h, lend_call *begin, const void *buf, lend_arg count,
		   lend_arg type, lend_arg dest, lend_arg tag, lend_arg comm)
{
	lend_arg request = 0;
	struct requests r = { h, .requests = &request, .statuses = h->abi.ignore };
	int rc = begin((lend_arg)buf, count, type, dest, tag, comm, &request);

	return rc ? rc : wait_on(&r, comm);
}

/* So few bytes are sent at once by MPICH and Open MPI: the receiver need not have come. */
static bool is_sent_at_once(struct hooks *h, lend_arg count, lend_arg type)
{
	int size = 0;

	return !MPI(h, Type_size)(type, &size) && (int64_t)(int)count * size <= AT_ONCE_MAX;
}

static int on_Send(lend_call *next, const void *buf, lend_arg count, lend_arg type,
		   lend_arg dest, lend_arg tag, lend_arg comm)
{
	struct hooks *h = hooks_active();

	if (!h || is_sent_at_once(h, count, type))
		return next((lend_arg)buf, count, type, dest, tag, comm);
	return send_by(h, MPI(h, Isend), buf, count, type, dest, tag, comm);
}

static int on_Ssend(lend_call *next, const void *buf, lend_arg count, lend_arg type,
		    lend_arg dest, lend_arg tag, lend_arg comm)
{
	struct hooks *h = hooks_active();

	return h ? send_by(h, MPI(h, Issend), buf, count, type, dest, tag, comm) :
		   next((lend_arg)buf, count, type, dest, tag, comm);
}

/* A message may be on its way, and nobody waits for its end. */
static int give_up(struct exchange *e, int rc)
{
	if (e->sends)
		MPI(e->hooks, Request_free)((lend_arg)&e->sends);
	return rc;
}

/*
 * A receive comes first, so that it is there before the message of the other rank. But a call that
 * fails may leave no receive, which would take the message of a later call.
 */
static int on_Sendrecv(lend_call *next, const void *out, lend_arg nout, lend_arg out_type,
		       lend_arg dest, lend_arg out_tag, void *in, lend_arg nin,
		       lend_arg in_type, lend_arg source, lend_arg in_tag, lend_arg comm,
		       void *status)
{
	struct exchange e = { hooks_active(), .status = status };
	bool send_first = errors_are_handled();
	struct errors errors;
	lend_call *send, *receive;
	int rc = 0;

	if (!e.hooks)
		return next((lend_arg)out, nout, out_type, dest, out_tag, in, nin, in_type,
			    source, in_tag, comm, status);
	send = MPI(e.hooks, Isend);
	receive = MPI(e.hooks, Irecv);
	if (send_first)
		rc = send((lend_arg)out, nout, out_type, dest, out_tag, comm, &e.sends);
	if (!rc)
		rc = receive((lend_arg)in, nin, in_type, source, in_tag, comm, &e.receives);
	if (!rc && !send_first)
		rc = send((lend_arg)out, nout, out_type, dest, out_tag, comm, &e.sends);
	if (rc)
		return give_up(&e, rc);
	errors = errors_begin(e.hooks);
	lender_wait(e.hooks->lender, test_exchange, &e, 0);
	return errors_end(e.hooks, &errors, comm, e.rc);
}

static int on_Probe(lend_call *next, lend_arg source, lend_arg tag, lend_arg comm,
		    void *status)
{
	struct probe p = { hooks_active(), source, tag, comm, NULL, status, 0 };

	if (!p.hooks)
		return next(source, tag, comm, status);
	lender_wait(p.hooks->lender, test_probe, &p, 0);
	return p.rc;
}

static int on_Mprobe(lend_call *next, lend_arg source, lend_arg tag, lend_arg comm,
		     void *message, void *status)
{
	struct probe p = { hooks_active(), source, tag, comm, message, status, 0 };

	if (!p.hooks)
		return next(source, tag, comm, message, status);
	lender_wait(p.hooks->lender, test_mprobe, &p, 0);
	return p.rc;
}

HOOK(Recv, (void *buf, lend_arg count, lend_arg type, lend_arg source, lend_arg tag,
	    lend_arg comm, void *status),
     buf, count, type, source, tag, comm, status)
HOOK(Wait, (void *request, void *status), request, status)
HOOK(Waitall, (int n, void *requests, void *statuses), n, requests, statuses)
HOOK(Waitany, (int n, void *requests, void *index, void *status), n, requests, index, status)
HOOK(Waitsome, (int n, void *requests, void *out, void *indices, void *statuses),
     n, requests, out, indices, statuses)
HOOK(Send, (const void *buf, lend_arg count, lend_arg type, lend_arg dest, lend_arg tag,
	    lend_arg comm),
     buf, count, type, dest, tag, comm)
HOOK(Ssend, (const void *buf, lend_arg count, lend_arg type, lend_arg dest, lend_arg tag,
	     lend_arg comm),
     buf, count, type, dest, tag, comm)
HOOK(Sendrecv, (const void *out, lend_arg nout, lend_arg out_type, lend_arg dest,
		lend_arg out_tag, void *in, lend_arg nin, lend_arg in_type, lend_arg source,
		lend_arg in_tag, lend_arg comm, void *status),
     out, nout, out_type, dest, out_tag, in, nin, in_type, source, in_tag, comm, status)
HOOK(Probe, (lend_arg source, lend_arg tag, lend_arg comm, void *status),
     source, tag, comm, status)
HOOK(Mprobe, (lend_arg source, lend_arg tag, lend_arg comm, void *message, void *status),
     source, tag, comm, message, status)
