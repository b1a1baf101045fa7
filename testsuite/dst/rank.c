/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank: the client library runs the script of the plan, and each value that it
 * returns is compared with what the ranks have agreed on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libio/registration.h"
#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"
#include "testsuite/dst/memory.h"
#include "testsuite/dst/step.h"

#define VALUE_MAX 4000
#define CROWD_MAX 6
#define SHORT_MAX 600 /* of a text value */

/* ---- what the ranks agree on ---- */

static uint64_t agreed(const struct sim_rank *r, uint64_t a, uint64_t b)
{
	uint64_t z = r->step->plan->seed * 31 + r->at * 1000003 + a * 7919 +
		     b * 104729 + 12345;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* The value of a rank: text of up to `max` bytes without its NUL. */
static int value_of(const struct sim_rank *r, uint32_t rank, int which, int max,
		    char *out)
{
	uint64_t z = agreed(r, rank, which);
	int len = z % 8 ? z / 8 % 24 : z / 8 % max;

	for (int i = 0; i < len; i++)
		out[i] = 'a' + (z >> i % 40) % 26;
	out[len] = '\0';
	return len;
}

static void key_of(const struct sim_rank *r, uint32_t rank, int which,
		   char key[40])
{
	snprintf(key, 40, "k%u-%u-%d", r->at, rank, which);
}

static uint32_t job_size(const struct sim_rank *r)
{
	return r->step->plan->ranks;
}

/* ---- verdicts ---- */

static int allow(const struct sim_rank *r, int rc, const char *what)
{
	trace(what, r->rank, rc);
	if (rc && plan_succeeds(r->step->plan)) {
		char why[512] = "";

		PMIX_Capabilities("refusal", why, sizeof(why));
		failed("rank %u, step %u: %s returns %d (%s)", r->rank, r->at,
		       what, rc, why);
	}
	return rc;
}

static void check_value(const struct sim_rank *r, uint32_t rank, int which,
			int max, const char *value, int len, const char *what)
{
	char want[VALUE_MAX + 1];
	int n = value_of(r, rank, which, max, want);

	if (len != n || memcmp(value, want, n) != 0)
		failed("rank %u, step %u: %s gives \"%.*s\" of rank %u in the place of \"%s\"",
		       r->rank, r->at, what, len < 80 ? len : 80, value, rank,
		       want);
}

/* ---- put, fence, get ---- */

static int put(const struct sim_rank *r, int which)
{
	char key[40], value[VALUE_MAX + 1];
	int len;

	key_of(r, r->rank, which, key);
	if (r->pmi1_api) {
		value_of(r, r->rank, which, SHORT_MAX, value);
		return allow(r, PMI_KVS_Put("7.0", key, value), "PMI_KVS_Put");
	}
	len = value_of(r, r->rank, which, SHORT_MAX, value);
	/* Without the extension only PMIX_KVS_Get_n gives back what that puts. */
	if (r->step->plan->wire != WIRE_EXTENDED || agreed(r, which, 3) % 2)
		return allow(r, PMI2_KVS_Put(key, value), "PMI2_KVS_Put");
	return allow(r, PMIX_KVS_Put_n(key, value, len), "PMIX_KVS_Put_n");
}

static int get_with(const struct sim_rank *r, const char *key, char *value,
		    int *len)
{
	int rc;

	if (r->pmi1_api) {
		rc = PMI_KVS_Get("7.0", key, value, VALUE_MAX);
		*len = rc ? 0 : strlen(value);
		return allow(r, rc, "PMI_KVS_Get");
	}
	if (draw_once_in(2))
		return allow(r, PMI2_KVS_Get(NULL, PMI2_ID_NULL, key, value,
					     VALUE_MAX, len), "PMI2_KVS_Get");
	return allow(r, PMIX_KVS_Get_n(key, value, VALUE_MAX, len),
		     "PMIX_KVS_Get_n");
}

static int get(const struct sim_rank *r, uint32_t rank, int which)
{
	char key[40], value[VALUE_MAX + 1] = "";
	int len = 0, rc;

	key_of(r, rank, which, key);
	rc = get_with(r, key, value, &len);
	if (!rc)
		check_value(r, rank, which, SHORT_MAX, value, len, "get");
	return rc;
}

static int get_some(const struct sim_rank *r, int puts)
{
	int rc = 0;

	for (int i = 0; !rc && i < 4; i++)
		rc = get(r, draw_below(job_size(r)), draw_below(puts));
	return rc;
}

static int fence(const struct sim_rank *r)
{
	if (r->pmi1_api)
		return allow(r, PMI_Barrier(), "PMI_Barrier");
	return allow(r, PMI2_KVS_Fence(), "PMI2_KVS_Fence");
}

static int do_fence(struct sim_rank *r)
{
	int puts = 1 + agreed(r, 1, 1) % 3, rc = 0;

	for (int i = 0; !rc && i < puts; i++)
		rc = put(r, i);
	rc = rc ? rc : fence(r);
	return rc ? rc : get_some(r, puts);
}

static int do_barrier(struct sim_rank *r)
{
	return fence(r);
}

/* ---- the extensions ---- */

static int do_allgather(struct sim_rank *r)
{
	char value[VALUE_MAX + 1], *all;
	int rc;

	all = __real_malloc((size_t)job_size(r) * PMI2X_MAXLENGTH);
	value_of(r, r->rank, 0, SHORT_MAX, value);
	rc = allow(r, PMIX_Allgather(value, all), "PMIX_Allgather");
	for (uint32_t i = 0; !rc && i < job_size(r); i++) {
		const char *at = all + (size_t)i * PMI2X_MAXLENGTH;

		check_value(r, i, 0, SHORT_MAX, at, strlen(at), "allgather");
	}
	__real_free(all);
	return rc;
}

/* The order of the server's ring is the tree's; made of puts it is that of ranks. */
static uint32_t ring_order(const struct sim_rank *r, uint32_t place)
{
	uint32_t at = (place + job_size(r)) % job_size(r);

	return r->step->plan->wire == WIRE_PMI1 ?
		       at : layout_order(r->step->layout)[at];
}

static int do_ring(struct sim_rank *r)
{
	char value[VALUE_MAX + 1], left[SHORT_MAX + 1], right[SHORT_MAX + 1];
	int place, size, rc;

	value_of(r, r->rank, 0, SHORT_MAX, value);
	rc = allow(r, PMIX_Ring(value, &place, &size, left, right,
				sizeof(left)), "PMIX_Ring");
	if (rc)
		return rc;
	if (size != (int)job_size(r) || ring_order(r, place) != r->rank)
		failed("rank %u: its place in the ring is %d of %d", r->rank,
		       place, size);
	check_value(r, ring_order(r, place - 1), 0, SHORT_MAX, left,
		    strlen(left), "left of the ring");
	check_value(r, ring_order(r, place + 1), 0, SHORT_MAX, right,
		    strlen(right), "right of the ring");
	return 0;
}

struct flight {
	PMIX_Request request;
	PMIX_View *view; /* NULL: a fence */
	bool done;
};

static int start(struct sim_rank *r, int which, struct flight *f)
{
	char value[VALUE_MAX + 1];
	int len, rc;

	*f = (struct flight){ .view = NULL };
	if (agreed(r, which, 5) % 2) {
		rc = put(r, which);
		return rc ? rc : allow(r, PMIX_KVS_Ifence(&f->request),
				       "PMIX_KVS_Ifence");
	}
	len = value_of(r, r->rank, which, VALUE_MAX, value);
	return allow(r, PMIX_Iallgather_view(value, len, &f->view, &f->request),
		     "PMIX_Iallgather_view");
}

static void check_view(struct sim_rank *r, int which, const PMIX_View *view)
{
	for (uint32_t i = 0; i < job_size(r); i++) {
		int len = -1;
		const char *value = PMIX_View_value(view, i, &len);

		check_value(r, i, which, VALUE_MAX, value, len, "view");
	}
}

static int complete(struct sim_rank *r, int which, struct flight *f)
{
	int flag = 0, rc;

	if (draw_once_in(3)) {
		rc = allow(r, PMIX_Test(f->request, &flag), "PMIX_Test");
		if (!rc && !flag)
			return 0; /* later */
	} else {
		rc = allow(r, PMIX_Wait(f->request), "PMIX_Wait");
	}
	f->done = true;
	if (rc)
		return rc;
	if (!f->view)
		return get(r, draw_below(job_size(r)), which);
	check_view(r, which, f->view);
	return allow(r, PMIX_View_free(f->view), "PMIX_View_free");
}

static bool any_left(const struct flight *f, int n)
{
	while (n && f[n - 1].done)
		n--;
	return n;
}

/* More than slots have cells, and a fence's own puts while others are under way. */
static int do_in_flight(struct sim_rank *r)
{
	int n = 1 + agreed(r, 2, 2) % CROWD_MAX, rc = 0, started = 0;
	struct flight f[CROWD_MAX];

	for (; !rc && started < n; started++)
		rc = start(r, started, &f[started]);
	while (!rc && any_left(f, started)) {
		int i = draw_below(started);

		if (!f[i].done)
			rc = complete(r, i, &f[i]);
	}
	return rc;
}

/* ---- groups ---- */

enum group { GROUP_WORLD, GROUP_NODE, GROUP_LIST, GROUP_KINDS };

static enum group group_of(const struct sim_rank *r)
{
	return agreed(r, 6, 6) % GROUP_KINDS;
}

/* Both are in the same one. */
static bool are_together(const struct sim_rank *r, uint32_t other)
{
	uint64_t members = agreed(r, 7, 7) >> 16;

	if (group_of(r) == GROUP_NODE)
		return r->step->plan->node_of[other] == r->node->id;
	return group_of(r) == GROUP_WORLD ||
	       (members >> r->rank & members >> other & 1);
}

/* A barrier of the ranks of a list; each rank may have an order of its own. */
static int barrier_of_list(const struct sim_rank *r)
{
	uint32_t begin = draw_below(job_size(r));
	int list[RANKS_MAX], n = 0;

	for (uint32_t i = 0; i < job_size(r); i++)
		if (are_together(r, (begin + i) % job_size(r)))
			list[n++] = (begin + i) % job_size(r);
	return PMI_Barrier_group(list, n, "list");
}

static int barrier_of_group(const struct sim_rank *r)
{
	int rc;

	if (group_of(r) == GROUP_LIST)
		rc = barrier_of_list(r);
	else
		rc = PMI_Barrier_group(group_of(r) == GROUP_NODE ? PMI_GROUP_NODE :
								   PMI_GROUP_WORLD,
				       0, "tag");
	return allow(r, rc, "PMI_Barrier_group");
}

static int get_of_group(const struct sim_rank *r)
{
	uint32_t other = draw_below(job_size(r));

	while (!are_together(r, other))
		other = (other + 1) % job_size(r);
	return get(r, other, 0);
}

/* Members have what members have put; after a fence all ranks have it. */
static int do_group(struct sim_rank *r)
{
	int times = are_together(r, r->rank) ? 1 + agreed(r, 8, 8) % 3 : 0;
	int rc = put(r, 0);

	for (int i = 0; !rc && i < times; i++)
		rc = barrier_of_group(r);
	rc = rc || !times ? rc : get_of_group(r);
	if (rc || agreed(r, 9, 9) % 2)
		return rc;
	rc = fence(r);
	return rc ? rc : get_some(r, 1);
}

/* ---- the rest ---- */

/* A rank that waits for an attribute of a dead rank waits forever. */
static int do_node_attribute(struct sim_rank *r)
{
	char key[40], value[VALUE_MAX + 1], got[VALUE_MAX + 1] = "";
	int found = 0, rc = 0;

	if (!plan_succeeds(r->step->plan))
		return 0;
	key_of(r, 0, r->node->id, key);
	value_of(r, r->node->id, 9, SHORT_MAX, value);
	if (!value[0])
		strcpy(value, "x");
	if (r->slot == 0)
		rc = allow(r, PMI2_Info_PutNodeAttr(key, value),
			   "PMI2_Info_PutNodeAttr");
	rc = rc ? rc : allow(r, PMI2_Info_GetNodeAttr(key, got, sizeof(got),
						      &found, 1),
			     "PMI2_Info_GetNodeAttr");
	if (!rc && (!found || strcmp(got, value) != 0))
		failed("rank %u: a node attribute is \"%s\", not \"%s\"",
		       r->rank, got, value);
	return rc;
}

static int do_job_attribute(struct sim_rank *r)
{
	char got[64] = "";
	int found = 0, size = 0, rc;

	if (r->step->plan->wire == WIRE_PMI1 || r->pmi1_api) {
		rc = allow(r, PMI_Get_universe_size(&size), "universe size");
	} else {
		rc = allow(r, PMI2_Info_GetJobAttr("universeSize", got,
						   sizeof(got), &found),
			   "PMI2_Info_GetJobAttr");
		size = atoi(got);
	}
	if (!rc && size != (int)job_size(r) && plan_succeeds(r->step->plan))
		failed("rank %u: the universe is %d", r->rank, size);
	return rc;
}

static int do_names(struct sim_rank *r)
{
	char name[40], port[1024] = "";
	int rc;

	key_of(r, r->rank, 0, name);
	rc = allow(r, PMI2_Nameserv_publish(name, NULL, "port;1"), "publish");
	rc = rc ? rc : allow(r, PMI2_Nameserv_lookup(name, NULL, port,
						     sizeof(port)), "lookup");
	if (!rc && strcmp(port, "port;1") != 0)
		failed("rank %u: looked up \"%s\"", r->rank, port);
	return rc;
}

static int do_pause(struct sim_rank *r)
{
	task_sleep(draw_once_in(4) ? draw_below(5 * SEC) : draw_below(MS));
	return 0;
}

static int (*const steps[STEP_KINDS])(struct sim_rank *r) = {
	[STEP_FENCE] = do_fence,
	[STEP_BARRIER] = do_barrier,
	[STEP_ALLGATHER] = do_allgather,
	[STEP_RING] = do_ring,
	[STEP_IN_FLIGHT] = do_in_flight,
	[STEP_GROUP] = do_group,
	[STEP_STORE] = rank_use_store,
	[STEP_NODE_ATTR] = do_node_attribute,
	[STEP_JOB_ATTR] = do_job_attribute,
	[STEP_NAMES] = do_names,
	[STEP_PAUSE] = do_pause,
};

/* ---- life ---- */

static const char *environment(struct process *p, const char *name)
{
	const struct sim_rank *r = p->arg;

	if (!strcmp(name, "PMI_FD"))
		return r->fd_text;
	if (!strcmp(name, "PMI_RANK"))
		return r->rank_text;
	if (!strcmp(name, "PMI_SIZE"))
		return r->size_text;
	if (!strcmp(name, "PMI2X_SYNC"))
		return r->sync_text[0] ? r->sync_text : NULL;
	if (!strcmp(name, "PMI_JOBID"))
		return "7.0";
	if (!strcmp(name, "PMI2X_NOSHM"))
		return r->no_shm ? "1" : NULL;
	if (!strcmp(name, "PMI2X_NOSLOTS"))
		return r->no_slots ? "1" : NULL;
	if (!strcmp(name, "PMI2X_DISABLE"))
		return r->step->plan->wire == WIRE_PMI2 ? "1" : NULL;
	if (!strcmp(name, "PMI2X_PMI1_WIRE"))
		return r->step->plan->wire == WIRE_PMI1 ? "1" : NULL;
	return NULL;
}

/* The wire of the plan is spoken; without memory a server may have refused it. */
static int check_wire(const struct sim_rank *r)
{
	enum wire wire = r->step->plan->wire;
	char found[40] = "", version[40] = "";

	PMIX_Capabilities("wire", found, sizeof(found));
	PMIX_Capabilities("extension", version, sizeof(version));
	if (strcmp(found, wire == WIRE_PMI1 ? "pmi-1" : "pmi-2") != 0 ||
	    strcmp(version, wire == WIRE_EXTENDED ? "1" : "0") != 0)
		return PMI2_FAIL;
	return 0;
}

static int init(struct sim_rank *r)
{
	int spawned, size, rank, appnum, rc;

	if (!r->pmi1_api)
		rc = PMI2_Init(&spawned, &size, &rank, &appnum);
	else if (!(rc = PMI_Init(&spawned)))
		rc = PMI_Get_size(&size) || PMI_Get_rank(&rank);
	rc = rc ? rc : check_wire(r);
	if (allow(r, rc, "init"))
		return rc;
	if (size != (int)job_size(r) || rank != (int)r->rank)
		failed("rank %u is told that it is rank %d of %d", r->rank,
		       rank, size);
	return 0;
}

static bool is_victim(const struct sim_rank *r, enum fault fault)
{
	const struct plan *p = r->step->plan;

	return p->fault == fault && p->victim == r->rank &&
	       p->victim_step == r->at;
}

/* A node stays for groups of others, but not for nodes that have never come. */
static int meet_first(struct sim_rank *r)
{
	const struct plan *p = r->step->plan;
	unsigned i = 0;

	while (i < p->nsteps && p->steps[i] != STEP_GROUP)
		i++;
	return i < p->nsteps ? fence(r) : 0;
}

static int run_steps(struct sim_rank *r)
{
	const struct plan *p = r->step->plan;
	int rc = meet_first(r);

	for (r->at = 0; !rc && r->at < p->nsteps; r->at++) {
		if (is_victim(r, FAULT_ABORT))
			PMI2_Abort(1, "a rank gives up");
		if (is_victim(r, FAULT_EARLY_EXIT))
			process_kill(r->process, draw_below(2) << 8);
		if (draw_once_in(3))
			task_sleep(draw_below(2 * MS));
		rc = steps[p->steps[r->at]](r);
	}
	return rc;
}

/* In whatever way programs end after an error. */
static void leave_in_trouble(struct sim_rank *r)
{
	switch (draw_below(4)) {
	case 0:
		PMI2_Abort(1, "a call has failed");
		break;
	case 1:
		process_kill(r->process, 1 << 8);
		break;
	default:
		PMI2_Finalize();
	}
}

static void *rank_main(void *arg)
{
	struct sim_rank *r = arg;
	int rc;

	rc = registration_of_rank(r->node->registration_fd, r->slot,
				  &r->pmi_fd);
	if (allow(r, rc, "registration_of_rank"))
		process_kill(r->process, 1 << 8);
	snprintf(r->fd_text, sizeof(r->fd_text), "%d", r->pmi_fd);
	if (draw_once_in(4))
		task_sleep(draw_below(r->step->plan->late_ns));
	rc = init(r);
	rc = rc ? rc : run_steps(r);
	if (rc)
		leave_in_trouble(r);
	else
		allow(r, r->pmi1_api ? PMI_Finalize() : PMI2_Finalize(),
		      "finalize");
	if (draw_once_in(2))
		task_sleep(draw_below(20 * MS));
	close(r->pmi_fd);
	check_nothing_left(r->process);
	process_kill(r->process, 0);
	return NULL;
}

void rank_begin(struct sim_rank *r)
{
	char name[24];

	snprintf(name, sizeof(name), "rank%u", r->rank);
	snprintf(r->rank_text, sizeof(r->rank_text), "%u", r->rank);
	snprintf(r->size_text, sizeof(r->size_text), "%u", job_size(r));
	if (r->node->sync_name[0])
		snprintf(r->sync_text, sizeof(r->sync_text), "%s:%u:7.0", r->node->sync_name,
			 r->rank);
	r->pmi1_api = draw_once_in(3);
	r->no_shm = draw_once_in(5);
	r->no_slots = draw_once_in(5);
	r->process = process_new(name, r->node->process->host);
	r->process->arg = r;
	r->process->getenv = environment;
	task_start(r->process, rank_main, r);
}
