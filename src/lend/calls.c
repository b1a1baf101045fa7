/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of MPI in which a rank may wait. Arguments pass as words: handles of MPICH are
 * integers. Point-to-point calls are made of nonblocking ones and tests. Before a collective,
 * ranks count arrivals, and drive MPI's progress meanwhile.
 */
#include "lend/calls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "lend/real.h"

#define EXPORTED __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define LIMIT_MS 1000
#define COMMS_MAX 64
/* Constants of MPICH */
#define IGNORE ((void *)1) /* MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE */
#define COMM_WORLD 0x44000000L
#define ANY_SOURCE (-2L)
#define ANY_TAG (-1L)
#define THREAD_MULTIPLE 3

typedef long word;
typedef int function(word, ...);

static struct lender *lender; /* NULL: MPI's own calls are made */
static const void *program;   /* the caller of MPI_Init */
static int (*in_parallel)(void);
static _Thread_local bool is_initial;

static function *find(function **cached, const char *name, const void *caller)
{
	if (!*cached)
		*cached = (function *)lend_need(name, caller);
	return *cached;
}

/* Functions that a profiler between this library and MPI may replace, and MPI's own. */
#define REAL(name) ({ static function *cached; find(&cached, #name, CALLER); })
#define MPI(name) ({ static function *cached; find(&cached, "P" #name, program); })

static bool is_active(void)
{
	return is_initial && lender && atomic_load(&lender->active) &&
	       !(in_parallel && in_parallel());
}

/* ---- requests ---- */

struct requests {
	int n;
	void *requests, *index, *out, *statuses;
	int rc;
};

static bool test_one(void *arg)
{
	struct requests *r = arg;
	int done = 0;

	r->rc = MPI(MPI_Test)((word)r->requests, &done, r->statuses);
	return done || r->rc;
}

static bool test_all(void *arg)
{
	struct requests *r = arg;
	int done = 0;

	r->rc = MPI(MPI_Testall)(r->n, r->requests, &done, r->statuses);
	return done || r->rc;
}

static bool test_any(void *arg)
{
	struct requests *r = arg;
	int done = 0;

	r->rc = MPI(MPI_Testany)(r->n, r->requests, r->index, &done, r->statuses);
	return done || r->rc;
}

static bool test_some(void *arg)
{
	struct requests *r = arg;

	r->rc = MPI(MPI_Testsome)(r->n, r->requests, r->out, r->index, r->statuses);
	return *(int *)r->out || r->rc;
}

EXPORTED int MPI_Recv(void *buf, word count, word type, word source, word tag, word comm,
		      void *status);
EXPORTED int MPI_Wait(void *request, void *status);
EXPORTED int MPI_Waitall(int n, void *requests, void *statuses);
EXPORTED int MPI_Waitany(int n, void *requests, void *index, void *status);
EXPORTED int MPI_Waitsome(int n, void *requests, void *out, void *indices, void *statuses);

int MPI_Recv(void *buf, word count, word type, word source, word tag, word comm, void *status)
{
	long request = 0;
	struct requests r = { .requests = &request, .statuses = status };
	int rc;

	if (!is_active())
		return REAL(MPI_Recv)((word)buf, count, type, source, tag, comm, status);
	rc = MPI(MPI_Irecv)((word)buf, count, type, source, tag, comm, &request);
	if (!rc)
		lender_wait(lender, test_one, &r, 0);
	return rc ? rc : r.rc;
}

int MPI_Wait(void *request, void *status)
{
	struct requests r = { .requests = request, .statuses = status };

	if (!is_active())
		return REAL(MPI_Wait)((word)request, status);
	lender_wait(lender, test_one, &r, 0);
	return r.rc;
}

int MPI_Waitall(int n, void *requests, void *statuses)
{
	struct requests r = { .n = n, .requests = requests, .statuses = statuses };

	if (!is_active())
		return REAL(MPI_Waitall)(n, requests, statuses);
	lender_wait(lender, test_all, &r, 0);
	return r.rc;
}

int MPI_Waitany(int n, void *requests, void *index, void *status)
{
	struct requests r = { .n = n, .requests = requests, .index = index, .statuses = status };

	if (!is_active())
		return REAL(MPI_Waitany)(n, requests, index, status);
	lender_wait(lender, test_any, &r, 0);
	return r.rc;
}

int MPI_Waitsome(int n, void *requests, void *out, void *indices, void *statuses)
{
	struct requests r = { .n = n, .requests = requests, .index = indices, .out = out,
			      .statuses = statuses };

	if (!is_active())
		return REAL(MPI_Waitsome)(n, requests, out, indices, statuses);
	lender_wait(lender, test_some, &r, 0);
	return r.rc;
}

/* ---- communicators ---- */

struct comm {
	word handle;
	uint32_t group, n;
	uint32_t *slots; /* members on this node */
};

static struct comm comms[COMMS_MAX];
static uint32_t ncomms;

static int slot_of(uint32_t rank)
{
	for (uint32_t i = 0; i < lender->ranks; i++)
		if (atomic_load(&lender->table->entries[i].ready) == 1 &&
		    lender->table->entries[i].facts.rank == rank)
			return (int)i;
	return -1;
}

/* Ranks in MPI_COMM_WORLD of the members; malloc'ed. */
static int *world_ranks(word handle, int *size)
{
	int group, world, *ranks, *all;

	MPI(MPI_Comm_size)(handle, size);
	MPI(MPI_Comm_group)(handle, &group);
	MPI(MPI_Comm_group)(COMM_WORLD, &world);
	ranks = calloc((size_t)*size, sizeof(*ranks));
	all = calloc((size_t)*size, sizeof(*all));
	for (int i = 0; ranks && i < *size; i++)
		ranks[i] = i;
	if (ranks && all)
		MPI(MPI_Group_translate_ranks)(group, (word)*size, ranks, (word)world, all);
	MPI(MPI_Group_free)((word)&group);
	MPI(MPI_Group_free)((word)&world);
	free(ranks);
	return all;
}

static void learn(struct comm *c, word handle)
{
	int size, inter = 0, *ranks;

	c->handle = handle;
	c->group = ARRIVALS_NONE;
	MPI(MPI_Comm_test_inter)(handle, &inter);
	ranks = inter ? NULL : world_ranks(handle, &size);
	if (!ranks)
		return;
	c->slots = calloc((size_t)size, sizeof(*c->slots));
	for (int i = 0; c->slots && i < size; i++)
		if (slot_of((uint32_t)ranks[i]) >= 0)
			c->slots[c->n++] = (uint32_t)slot_of((uint32_t)ranks[i]);
	if (c->n > 1)
		c->group = arrivals_group(&lender->arrivals,
					  arrivals_key((uint32_t *)ranks, (uint32_t)size));
	free(ranks);
}

/* NULL: nothing is counted on it. A handle that MPI finds wrong is left to MPI's own call. */
static struct comm *comm_of(word handle)
{
	int size;

	handle = (int)handle;
	for (uint32_t i = 0; i < ncomms; i++)
		if (comms[i].handle == handle)
			return &comms[i];
	if (!handle || handle == 0x04000000L || ncomms == COMMS_MAX ||
	    MPI(MPI_Comm_size)(handle, &size))
		return NULL;
	learn(&comms[ncomms], handle);
	return &comms[ncomms++];
}

static void forget(word handle)
{
	for (uint32_t i = 0; i < ncomms; i++)
		if (comms[i].handle == (int)handle) {
			free(comms[i].slots);
			comms[i] = comms[--ncomms];
			memset(&comms[ncomms], 0, sizeof(comms[ncomms]));
			return;
		}
}

/* ---- collectives ---- */

struct arrival {
	struct comm *comm;
	uint32_t calls;
	bool in_time;
};

static bool has_all(const struct arrival *a)
{
	return arrivals_complete(&lender->arrivals, &lender->ledger, a->comm->group, a->calls,
				 a->comm->slots, a->comm->n);
}

static bool test_arrivals(void *arg)
{
	int flag;

	if (has_all(arg))
		return true;
	MPI(MPI_Iprobe)(ANY_SOURCE, ANY_TAG, COMM_WORLD, &flag, IGNORE);
	return false;
}

/* Before a collective that synchronizes. */
static struct arrival meet(word handle)
{
	struct arrival a = { .in_time = true };

	if (!is_active())
		return a;
	a.comm = comm_of(handle);
	if (!a.comm || a.comm->group == ARRIVALS_NONE)
		return a;
	a.calls = arrivals_enter(&lender->arrivals, a.comm->group, lender->slot);
	a.in_time = lender_wait(lender, test_arrivals, &a, LIMIT_MS);
	return a;
}

/*
 * Behind it. All members have come, so a count that is still behind stays so: a rank has not
 * counted all of its calls. This rank stops counting on the communicator.
 */
static void part(const struct arrival *a)
{
	if (!a->in_time && !has_all(a))
		a->comm->group = ARRIVALS_NONE;
}

EXPORTED int MPI_Barrier(word comm);
EXPORTED int MPI_Allreduce(const void *in, void *out, word count, word type, word op, word comm);
EXPORTED int MPI_Comm_free(int *comm);
EXPORTED int MPI_Comm_disconnect(int *comm);
EXPORTED int MPI_Finalize(void);

int MPI_Barrier(word comm)
{
	struct arrival a = meet(comm);
	int rc = REAL(MPI_Barrier)(comm);

	part(&a);
	return rc;
}

int MPI_Allreduce(const void *in, void *out, word count, word type, word op, word comm)
{
	struct arrival a = meet(comm);
	int rc = REAL(MPI_Allreduce)((word)in, out, count, type, op, comm);

	part(&a);
	return rc;
}

int MPI_Comm_free(int *comm)
{
	if (lender && comm)
		forget(*comm);
	return REAL(MPI_Comm_free)((word)comm);
}

int MPI_Comm_disconnect(int *comm)
{
	if (lender && comm)
		forget(*comm);
	return REAL(MPI_Comm_disconnect)((word)comm);
}

int MPI_Finalize(void)
{
	int (*real)(void) = (int (*)(void))lend_need("MPI_Finalize", CALLER);

	if (lender)
		lender_stop(lender);
	return real();
}

void calls_begin(struct lender *l, const void *caller)
{
	int provided = THREAD_MULTIPLE;

	if (!atomic_load(&l->active))
		return;
	program = caller;
	MPI(MPI_Query_thread)((word)&provided);
	if (provided == THREAD_MULTIPLE) {
		lender_stop(l);
		return;
	}
	in_parallel = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_in_parallel");
	is_initial = true;
	lender = l;
}
