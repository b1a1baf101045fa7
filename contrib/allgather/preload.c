/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The preloadable form: PMIX_Allgather, PMIX_Iallgather and their relatives of an
 * unmodified program go over the ring where that is worth while, and to the PMI
 * library otherwise. All processes must decide alike, so the decision rests on
 * what is the same for all: the job and the size of a slot.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../libpmi2x/print_error.h"
#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"
#include "ring.h"
#include "settings.h"

#define WORTH_WHILE 65536 /* bytes of all slots; PMI2X_ALLGATHER_MIN */
#define SPEAKERS 2        /* say how the ring has failed: one may be dead */
#define OWN_REQUEST (UINT64_C(1) << 63) /* no request of libpmi2x has it */

/* A gather under way over the ring. */
struct gather {
	struct gather *next;
	pmi2x_ring_request request;
	int *lengths;      /* the caller's, or NULL */
	size_t *uncut;     /* the ring's; behind this: the copied value */
};

enum state { UNTRIED, IN_USE, NOT_WORTH_IT };

/* The one session that a process has. */
static struct {
	pthread_mutex_t lock;
	int min;           /* bytes of all slots; 0: not read yet */
	enum state state;
	unsigned int rings;
	struct pmi2x_ring *ring;
	struct gather *first;
} preload = { .lock = PTHREAD_MUTEX_INITIALIZER };

typedef void function(void);

/* The function of the PMI library behind this one; NULL: it has none. */
static function *real(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);
	function *f;

	memcpy(&f, &found, sizeof(f));
	return f;
}

/* ---- whether ---- */

/* A number of the PMI library's: rank, size. */
static bool ask(const char *name, int *out)
{
	int (*get)(int *out);
	function *f = real(name);

	memcpy(&get, &f, sizeof(f));
	return get && get(out) == 0;
}

/* For what all processes have to say alike. */
static bool is_first(void)
{
	int rank;

	return !ask("PMI2_Job_GetRank", &rank) || rank == 0;
}

/* All must have the same, so what is invalid is the preset for all. */
static int read_min(void)
{
	char why[TRANSPORT_REASON_MAX];
	int min = WORTH_WHILE;

	if (setting_number("PMI2X_ALLGATHER_MIN", 1, INT_MAX, &min, why) &&
	    is_first())
		print_error("pmi2x-allgather: %s; %d is used\n", why, min);
	return min;
}

/* Covers all slots; under the lock. */
static bool is_worth_while(size_t bytes)
{
	if (!preload.min)
		preload.min = read_min();
	return bytes >= (size_t)preload.min;
}

/* Over PMI or within one node the PMI library is as good. */
static bool is_better(const struct pmi2x_ring *r)
{
	return r->elements > 1 ||
	       (r->elements == 1 && setting_text("PMI2X_ALLGATHER_TRANSPORT"));
}

static void try_ring(void)
{
	struct ring_use use = { "pmi2x-agp", "verbs,pmi", preload.rings++ };
	char why[PMI2X_RING_ERROR_MAX];

	preload.state = NOT_WORTH_IT;
	if (ring_create(&preload.ring, &use, NULL, why)) {
		if (is_first())
			print_error("pmi2x-allgather: not used: %s\n", why);
		return;
	}
	if (is_better(preload.ring)) {
		preload.state = IN_USE;
		return;
	}
	pmi2x_ring_destroy(preload.ring);
	preload.ring = NULL;
}

/* The ring to use for slots of that length, or NULL. */
static struct pmi2x_ring *ring_for(size_t slot)
{
	struct pmi2x_ring *ring = NULL;
	int size;

	if (!ask("PMI2_Info_GetSize", &size))
		return NULL;
	pthread_mutex_lock(&preload.lock);
	if (is_worth_while(size * slot)) {
		if (preload.state == UNTRIED)
			try_ring();
		if (preload.state == IN_USE)
			ring = preload.ring;
	}
	pthread_mutex_unlock(&preload.lock);
	return ring;
}

/* ---- gathers ---- */

static struct gather *gather_new(struct pmi2x_ring *r, const void *value,
				 size_t len, int lengths[])
{
	struct gather *g = calloc(1, sizeof(*g));

	if (g)
		g->uncut = malloc(r->size * sizeof(*g->uncut) + len + 1);
	if (!g || !g->uncut) {
		free(g);
		return NULL;
	}
	memcpy(g->uncut + r->size, value, len);
	g->lengths = lengths;
	return g;
}

static void gather_free(struct gather *g)
{
	free(g->uncut);
	free(g);
}

static int start(struct pmi2x_ring *r, const void *value, size_t len,
		 void *buffer, size_t slot, int lengths[],
		 PMIX_Request *request)
{
	struct gather *g = gather_new(r, value, len, lengths);
	int code;

	if (!g)
		return PMI2_ERR_NOMEM;
	code = pmi2x_ring_iallgather_v(r, g->uncut + r->size, len, buffer,
				       slot, g->uncut, &g->request);
	if (code) {
		gather_free(g);
		return code;
	}
	*request = g->request | OWN_REQUEST;
	pthread_mutex_lock(&preload.lock);
	g->next = preload.first;
	preload.first = g;
	pthread_mutex_unlock(&preload.lock);
	return PMI2_SUCCESS;
}

/* Take a gather out of the list, for the thread that completes it. */
static struct gather *take(PMIX_Request request)
{
	struct gather **at, *g;

	pthread_mutex_lock(&preload.lock);
	at = &preload.first;
	while (*at && (*at)->request != (request & ~OWN_REQUEST))
		at = &(*at)->next;
	g = *at;
	if (g)
		*at = g->next;
	pthread_mutex_unlock(&preload.lock);
	return g;
}

static void give_back(struct gather *g)
{
	pthread_mutex_lock(&preload.lock);
	g->next = preload.first;
	preload.first = g;
	pthread_mutex_unlock(&preload.lock);
}

static int finish(struct gather *g, int code)
{
	if (code && preload.ring->rank < SPEAKERS)
		print_error("pmi2x-allgather: %s\n",
			 pmi2x_ring_error(preload.ring));
	for (int i = 0; !code && g->lengths && i < preload.ring->size; i++)
		g->lengths[i] = (int)g->uncut[i];
	gather_free(g);
	return code;
}

static int wait_own(PMIX_Request request)
{
	struct gather *g = take(request);

	if (!g)
		return PMI2_ERR_INVALID_ARG;
	return finish(g, pmi2x_ring_wait(preload.ring, g->request));
}

static int test_own(PMIX_Request request, int *flag)
{
	struct gather *g = take(request);
	int code;

	if (!g)
		return PMI2_ERR_INVALID_ARG;
	code = pmi2x_ring_test(preload.ring, g->request, flag);
	if (code || *flag)
		return finish(g, code);
	give_back(g);
	return code;
}

/* ---- what the program calls ---- */

int PMIX_Iallgather_n(const void *value, int len, void *buffer, int maxlength,
		      int lengths[], PMIX_Request *request)
{
	int (*next)(const void *, int, void *, int, int[], PMIX_Request *);
	function *f = real("PMIX_Iallgather_n");
	struct pmi2x_ring *r = NULL;

	if (request && buffer && (value || !len) && len >= 0 &&
	    len <= PMI2X_MAX_VALLEN && maxlength >= 1)
		r = ring_for(maxlength);
	if (r)
		return start(r, value, len, buffer, maxlength, lengths,
			     request);
	memcpy(&next, &f, sizeof(f));
	return next ? next(value, len, buffer, maxlength, lengths, request)
		    : PMI2_FAIL;
}

int PMIX_Allgather_n(const void *value, int len, void *buffer, int maxlength,
		     int lengths[])
{
	PMIX_Request request;
	int code = PMIX_Iallgather_n(value, len, buffer, maxlength, lengths,
				     &request);

	return code ? code : PMIX_Wait(request);
}

int PMIX_Iallgather(const char value[], void *buffer, PMIX_Request *request)
{
	int (*next)(const char[], void *, PMIX_Request *);
	function *f = real("PMIX_Iallgather");
	struct pmi2x_ring *r = NULL;

	if (value && buffer && request && strlen(value) < PMI2X_MAXLENGTH)
		r = ring_for(PMI2X_MAXLENGTH);
	if (r) {
		/* Values end with a NUL, and so do their slots. */
		memset(buffer, 0, (size_t)r->size * PMI2X_MAXLENGTH);
		return start(r, value, strlen(value), buffer, PMI2X_MAXLENGTH,
			     NULL, request);
	}
	memcpy(&next, &f, sizeof(f));
	return next ? next(value, buffer, request) : PMI2_FAIL;
}

int PMIX_Allgather(const char value[], void *buffer)
{
	PMIX_Request request;
	int code = PMIX_Iallgather(value, buffer, &request);

	return code ? code : PMIX_Wait(request);
}

int PMIX_Wait(PMIX_Request request)
{
	int (*next)(PMIX_Request);
	function *f = real("PMIX_Wait");

	if (request & OWN_REQUEST)
		return wait_own(request);
	memcpy(&next, &f, sizeof(f));
	return next ? next(request) : PMI2_FAIL;
}

int PMIX_Test(PMIX_Request request, int *flag)
{
	int (*next)(PMIX_Request, int *);
	function *f = real("PMIX_Test");

	if (flag && (request & OWN_REQUEST))
		return test_own(request, flag);
	memcpy(&next, &f, sizeof(f));
	return next ? next(request, flag) : PMI2_FAIL;
}

/* ---- the end of the session ---- */

static void end_ring(void)
{
	while (preload.first)
		wait_own(preload.first->request | OWN_REQUEST);
	pthread_mutex_lock(&preload.lock);
	pmi2x_ring_destroy(preload.ring);
	preload.ring = NULL;
	preload.state = UNTRIED;
	pthread_mutex_unlock(&preload.lock);
}

static int finalize(const char *name)
{
	int (*next)(void);
	function *f = real(name);

	end_ring();
	memcpy(&next, &f, sizeof(f));
	return next ? next() : PMI2_FAIL;
}

int PMI2_Finalize(void)
{
	return finalize("PMI2_Finalize");
}

int PMI_Finalize(void)
{
	return finalize("PMI_Finalize");
}
