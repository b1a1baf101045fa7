/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of tasks that run on a node. */
#include "libdvm/node.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "libdvm/kept.h"

#define OUT_MAX ((size_t)512 << 20) /* bytes of messages of a turn */
#define WHY_MAX DVM_TEXT_MAX

/* Milliseconds on a machine that is overloaded: */
#define DOUBT_MS 2000        /* between two processes of a step that Slurm signals */
#define DOUBT_OTHERS_MS 4000 /* until the node that has failed says so */
#define CONTINUED_MS 60000   /* from Slurm's SIGCONT to SIGTERM, and what ends by that */

/* Environment and directory that parts share; a copy of the message. */
struct profile {
	uint32_t number;
	size_t parts;
	bool forgotten; /* by the head: goes with the last part */
	bool old;       /* of another head: not among those that are known by number */
	struct dvm_profile_msg msg;
	char *bytes;
	UT_hash_handle hh;
};

/* The last bytes of what came. */
struct tail {
	char *bytes; /* DVM_TAIL_MAX, or NULL: nothing came */
	size_t len;
};

/*
 * Why it is not told yet that a part has failed.
 *
 *   NO_DOUBT --> OF_RANK      one of its ranks has ended as by Slurm's signal
 *   NO_DOUBT --> OF_OTHERS    its PMI says that it fails, and no rank of it has: another
 *                             node's have, or its pmi2x-pmixd was ended
 *   any      --> NO_DOUBT     after its time: it has failed; OF_OTHERS: the head ends it
 */
enum doubt { NO_DOUBT, OF_RANK, OF_OTHERS };

struct part;

/* A process. */
struct rank {
	int64_t process;
	struct part *part;
	uint32_t number; /* of the rank */
	UT_hash_handle hh;
};

struct part {
	uint32_t number;
	uint64_t task;
	uint32_t instance;
	struct profile *profile;
	enum dvm_output output;
	uint32_t first_rank, count;
	struct rank *ranks;
	uint32_t left;         /* that have not ended */
	uint64_t deadline_ms;  /* of its time limit, of a doubt, of its grace; 0: none */
	uint32_t grace_ms;
	enum doubt doubt;
	int signalled;         /* what the head had it sent last */
	bool ending;           /* has been sent SIGTERM */
	bool failing;          /* ... because one of its ranks has failed */
	bool pmi;              /* its ranks have one */
	bool waits_for_pmi;    /* ... which is all that has not ended */
	bool keep;             /* its end */
	struct dvm_held held;
	struct dvm_ended end;
	char why[WHY_MAX];
	struct tail tails[2];  /* of stdout and stderr */
	struct part *prev, *next;
	UT_hash_handle hh;     /* by number */
	UT_hash_handle hh_task;
};

struct dvm_node {
	struct dvm_node_ops ops;
	void *arg;
	struct profile *profiles;
	struct part *parts;   /* by number */
	struct part *by_task;
	struct part *timed;   /* list of those that have a deadline */
	struct rank *ranks;   /* by process */
	struct kept_set *kept;
	struct dvm_register is;
	uint32_t next_part;
	uint64_t continued_ms; /* when it was last; 0: never */
	struct buf out;
	bool leaving;
	struct dvm_time now;
};

static void send_msg(struct dvm_node *n, const struct dvm_msg *m)
{
	/* It is for the head to find out what is missing, when it asks. */
	(void)dvm_msg_pack(&n->out, m);
}

/* ---- profiles ---- */

static struct profile *find_profile(struct dvm_node *n, uint32_t number)
{
	struct profile *p;

	HASH_FIND(hh, n->profiles, &number, sizeof(number), p);
	return p;
}

static void drop_profile(struct dvm_node *n, struct profile *p)
{
	if (p->parts || !p->forgotten)
		return;
	if (!p->old)
		HASH_DEL(n->profiles, p);
	free(p->bytes);
	free(p);
}

static int add_profile(struct dvm_node *n, const struct dvm_profile_msg *m)
{
	struct profile *p;

	if (find_profile(n, m->number))
		return 0;
	p = calloc(1, sizeof(*p));
	if (p)
		p->bytes = malloc(m->cwd.len + m->env.len);
	if (!p || !p->bytes) {
		free(p);
		return -ENOMEM;
	}
	memcpy(p->bytes, m->cwd.data, m->cwd.len);
	if (m->env.len)
		memcpy(p->bytes + m->cwd.len, m->env.data, m->env.len);
	p->number = m->number;
	p->msg = *m;
	p->msg.cwd.data = p->bytes;
	p->msg.env.data = p->bytes + m->cwd.len;
	HASH_ADD(hh, n->profiles, number, sizeof(p->number), p);
	return 0;
}

static void forget_profile(struct dvm_node *n, uint32_t number)
{
	struct profile *p = find_profile(n, number);

	if (!p)
		return;
	p->forgotten = true;
	drop_profile(n, p);
}

/* Another head has its own numbers. */
static void forget_profiles(struct dvm_node *n)
{
	struct profile *p, *next;

	HASH_ITER(hh, n->profiles, p, next) {
		HASH_DEL(n->profiles, p);
		p->forgotten = p->old = true;
		drop_profile(n, p);
	}
}

/* ---- output ---- */

static void keep_tail(struct tail *t, const char *data, size_t len)
{
	size_t keep;

	if (!t->bytes)
		t->bytes = malloc(DVM_TAIL_MAX);
	if (!t->bytes)
		return;
	if (len >= DVM_TAIL_MAX) {
		memcpy(t->bytes, data + len - DVM_TAIL_MAX, DVM_TAIL_MAX);
		t->len = DVM_TAIL_MAX;
		return;
	}
	keep = t->len + len > DVM_TAIL_MAX ? DVM_TAIL_MAX - len : t->len;
	memmove(t->bytes, t->bytes + t->len - keep, keep);
	memcpy(t->bytes + keep, data, len);
	t->len = keep + len;
}

void dvm_node_output(struct dvm_node *n, uint32_t part, int fd, const void *data,
		     size_t len)
{
	struct part *p;
	struct dvm_msg m = { .type = DVM_OUTPUT };

	HASH_FIND(hh, n->parts, &part, sizeof(part), p);
	if (!p || fd < 1 || fd > 2)
		return;
	if (p->output != DVM_OUTPUT_FORWARD) {
		keep_tail(&p->tails[fd - 1], data, len);
		return;
	}
	m.output = (struct dvm_output_msg){
		p->task, p->first_rank, (uint32_t)fd, { data, len },
	};
	send_msg(n, &m);
}

/* ---- the end of a part ---- */

static void part_free(struct dvm_node *n, struct part *p)
{
	if (p->deadline_ms)
		DL_DELETE(n->timed, p);
	HASH_DELETE(hh, n->parts, p);
	HASH_DELETE(hh_task, n->by_task, p);
	p->profile->parts--;
	drop_profile(n, p->profile);
	free(p->tails[0].bytes);
	free(p->tails[1].bytes);
	free(p->ranks);
	free(p);
}

static void part_ended(struct dvm_node *n, struct part *p)
{
	struct dvm_msg m = { .type = DVM_ENDED };

	n->ops.close_output(n->arg, p->number);
	p->end.why = (struct dvm_bytes){ p->why, strlen(p->why) };
	p->end.out = (struct dvm_bytes){ p->tails[0].bytes, p->tails[0].len };
	p->end.err = (struct dvm_bytes){ p->tails[1].bytes, p->tails[1].len };
	m.ended = p->end;
	send_msg(n, &m);
	if (p->keep)
		kept_add(n->kept, &p->held, &p->end);
	part_free(n, p);
}

static void set_deadline(struct dvm_node *n, struct part *p, uint64_t ms)
{
	if (!p->deadline_ms && ms)
		DL_APPEND(n->timed, p);
	if (p->deadline_ms && !ms)
		DL_DELETE(n->timed, p);
	p->deadline_ms = ms;
}

/* All its ranks have ended. Of one that has failed its PMI may still say why. */
static void ranks_over(struct dvm_node *n, struct part *p)
{
	if (!p->end.ended_ns)
		p->end.ended_ns = n->now.wall_ns;
	set_deadline(n, p, 0);
	if (p->pmi)
		n->ops.close_pmi(n->arg, p->number);
	p->waits_for_pmi = p->pmi && p->end.status && !*p->why;
	if (!p->waits_for_pmi)
		part_ended(n, p);
}

static void signal_part(struct dvm_node *n, struct part *p, int number)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->ranks[i].process)
			n->ops.signal(n->arg, p->ranks[i].process, number);
}

/* First politely. */
static void end_part(struct dvm_node *n, struct part *p)
{
	if (p->ending || p->doubt)
		return;
	p->ending = true;
	signal_part(n, p, SIGTERM);
	signal_part(n, p, SIGCONT); /* a stopped one would not hear it */
	set_deadline(n, p, n->now.ms + (p->grace_ms ? p->grace_ms : 1));
}

/* The first failure says how the part ended; what follows is its consequence. */
static void note_end(struct part *p, uint32_t rank, const struct node_end *e)
{
	p->end.user_us += e->user_us;
	p->end.system_us += e->system_us;
	if (e->peak_kib > p->end.peak_kib)
		p->end.peak_kib = e->peak_kib;
	if (p->end.status || !e->status)
		return;
	p->end.status = e->status;
	p->end.rank = rank;
	p->end.not_started = e->why != NULL;
	if (e->why && !*p->why)
		strncpy(p->why, e->why, sizeof(p->why) - 1);
}

static void say(struct dvm_node *n, const struct part *p, enum dvm_msg_type type)
{
	const struct dvm_msg m = {
		.type = type, .started = { p->task, p->instance },
	};

	send_msg(n, &m);
}

/* A rank of it has failed, and others still run, here or elsewhere. */
static void part_fails(struct dvm_node *n, struct part *p)
{
	if (p->ending)
		return;
	p->failing = true;
	say(n, p, DVM_FAILING);
	end_part(n, p);
}

/* ---- doubts ---- */

static bool was_continued(const struct dvm_node *n)
{
	return n->continued_ms && n->now.ms - n->continued_ms < CONTINUED_MS;
}

/* By a signal with which Slurm ends a step, or as a shell says so of its command. */
static bool ended_by_slurm(const struct part *p, int32_t status)
{
	int number = status & 0x7f ? status & 0x7f : (status >> 8 & 0xff) - 128;

	return (number == SIGTERM || number == SIGKILL) && number != p->signalled;
}

static bool is_doubtful(const struct dvm_node *n, const struct part *p,
			const struct node_end *e)
{
	return e->status && !e->why && !p->ending &&
	       (ended_by_slurm(p, e->status) || was_continued(n));
}

static void begin_doubt(struct dvm_node *n, struct part *p, enum doubt doubt)
{
	p->doubt = doubt;
	set_deadline(n, p, n->now.ms + (doubt == OF_RANK ? DOUBT_MS : DOUBT_OTHERS_MS));
}

/* The part may be gone then. */
static void end_doubt(struct dvm_node *n, struct part *p)
{
	p->doubt = NO_DOUBT;
	set_deadline(n, p, 0);
	if (p->left)
		part_fails(n, p);
	else
		ranks_over(n, p);
}

/* ---- ends of ranks ---- */

static void rank_ended(struct dvm_node *n, struct rank *r, const struct node_end *e)
{
	struct part *p = r->part;

	r->process = 0;
	if (p->pmi)
		n->ops.pmi_rank_ended(n->arg, p->number,
				      (uint32_t)(r - p->ranks), e->status);
	note_end(p, r->number, e);
	if (!--p->left)
		p->end.ended_ns = n->now.wall_ns;
	if (!p->doubt && is_doubtful(n, p, e))
		begin_doubt(n, p, OF_RANK);
	if (p->doubt)
		return;
	if (!p->left)
		ranks_over(n, p);
	else if (e->status)
		part_fails(n, p);
}

bool dvm_node_ended(struct dvm_node *n, int64_t process, const struct node_end *end,
		    struct dvm_time now)
{
	struct rank *r;

	n->now = now;
	HASH_FIND(hh, n->ranks, &process, sizeof(process), r);
	if (!r)
		return false;
	HASH_DEL(n->ranks, r);
	rank_ended(n, r, end);
	return true;
}

bool dvm_node_is_rank(const struct dvm_node *n, int64_t process)
{
	const struct rank *r;

	HASH_FIND(hh, n->ranks, &process, sizeof(process), r);
	return r;
}

bool dvm_node_any_rank(const struct dvm_node *n, bool (*fn)(void *arg, int64_t process),
		       void *arg)
{
	const struct rank *r;

	for (r = n->ranks; r; r = r->hh.next)
		if (fn(arg, r->process))
			return true;
	return false;
}

/* ---- starting ---- */

/* The cores of the rank, which are taken out of those of the part. */
static void share(struct node_rank *r, struct dvm_cores *cores, uint64_t *gpus,
		  uint32_t each_cores, uint32_t each_gpus)
{
	memset(&r->cores, 0, sizeof(r->cores));
	cores_move(&r->cores, cores, each_cores);
	r->gpus = 0;
	for (; each_gpus; each_gpus--) {
		r->gpus |= *gpus & -*gpus;
		*gpus &= *gpus - 1;
	}
}

static void start_rank(struct dvm_node *n, struct part *p, const struct node_rank *what)
{
	struct rank *r = &p->ranks[what->local];
	struct node_end failed = { .status = 126 << 8 };
	int64_t process = n->ops.start(n->arg, what);

	r->part = p;
	r->number = p->first_rank + what->local;
	if (process > 0) {
		r->process = process;
		HASH_ADD(hh, n->ranks, process, sizeof(r->process), r);
		return;
	}
	failed.why = strerror((int)-process);
	note_end(p, r->number, &failed);
	p->left--;
}

static void start_ranks(struct dvm_node *n, struct part *p,
			const struct dvm_launch *l)
{
	struct node_rank what = {
		.launch = l, .profile = &p->profile->msg, .part = p->number,
	};
	struct dvm_cores cores = l->cores;
	uint64_t gpus = l->gpus;
	uint32_t each_cores = cores_count(&cores) / l->ranks_here;
	uint32_t each_gpus = (uint32_t)__builtin_popcountll(gpus) / l->ranks_here;

	for (uint32_t i = 0; i < l->ranks_here; i++) {
		what.local = i;
		share(&what, &cores, &gpus, each_cores, each_gpus);
		start_rank(n, p, &what);
	}
}

static struct part *add_part(struct dvm_node *n, const struct dvm_launch *l,
			     struct profile *profile)
{
	struct part *p = calloc(1, sizeof(*p));

	if (p)
		p->ranks = calloc(l->ranks_here, sizeof(*p->ranks));
	if (!p || !p->ranks) {
		free(p);
		return NULL;
	}
	p->number = n->next_part++;
	p->task = l->task;
	p->instance = l->instance;
	p->profile = profile;
	p->output = l->output;
	p->first_rank = l->first_rank;
	p->count = p->left = l->ranks_here;
	p->grace_ms = l->grace_ms;
	p->end.task = l->task;
	p->end.instance = l->instance;
	p->end.started_ns = n->now.wall_ns;
	p->keep = l->keep;
	p->held = (struct dvm_held){
		l->task, l->instance, l->nodes, l->node, l->first_rank,
		l->ranks_here, l->cores, l->gpus, n->now.wall_ns,
	};
	profile->parts++;
	HASH_ADD(hh, n->parts, number, sizeof(p->number), p);
	HASH_ADD(hh_task, n->by_task, task, sizeof(p->task), p);
	return p;
}

bool node_wants_pmi(const struct dvm_launch *l)
{
	return (l->ranks > 1 || l->pmi) && (l->nodes == 1 || l->places.len);
}

static int open_part(struct dvm_node *n, struct part *p, const struct dvm_launch *l)
{
	int rc = n->ops.open_output(n->arg, p->number);

	if (rc || !node_wants_pmi(l))
		return rc;
	rc = n->ops.open_pmi(n->arg, p->number, l);
	p->pmi = !rc;
	return rc;
}

static int launch(struct dvm_node *n, const struct dvm_launch *l)
{
	struct profile *profile = find_profile(n, l->profile);
	struct part *p;
	int rc;

	if (!profile)
		return -EPROTO;
	p = add_part(n, l, profile);
	if (!p)
		return -ENOMEM;
	rc = open_part(n, p, l);
	if (!rc)
		start_ranks(n, p, l);
	if (rc || !p->left) {
		p->left = 0;
		note_end(p, p->first_rank, &(struct node_end){
			.status = 126 << 8, .why = strerror(-rc) });
		ranks_over(n, p);
		return 0;
	}
	if (l->limit_s)
		set_deadline(n, p, n->now.ms + (uint64_t)l->limit_s * 1000);
	say(n, p, DVM_STARTED);
	if (p->end.status)
		part_fails(n, p);
	return 0;
}

/* ---- how it is ---- */

static void pack_rank(struct dvm_node *n, const struct part *p, uint32_t i,
		      struct buf *out)
{
	struct dvm_rank r = {
		.rank = p->first_rank + i,
		.process = (uint64_t)p->ranks[i].process,
		.state = '-',
	};

	if (r.process)
		n->ops.look(n->arg, p->ranks[i].process, &r);
	(void)dvm_rank_pack(out, &r); /* what is missing is not shown */
}

/* `p` is NULL when it has ended. */
static void tell(struct dvm_node *n, const struct part *p, const struct dvm_ask *about)
{
	struct dvm_msg m = {
		.type = DVM_TOLD,
		.told = { .about = *about, .what = DVM_TOLD_RANKS, .pmi = p && p->pmi },
	};
	struct buf ranks;

	buf_init(&ranks, DVM_TOLD_MAX);
	for (uint32_t i = 0; p && i < p->count; i++)
		pack_rank(n, p, i, &ranks);
	m.told.data = (struct dvm_bytes){ ranks.data, ranks.len };
	send_msg(n, &m);
	buf_free(&ranks);
	if (m.told.pmi)
		n->ops.ask_pmi(n->arg, &(struct dvm_pmi_ask){ p->number, *about });
}

/* ---- input ---- */

/* NULL: it has ended meanwhile. */
static struct part *find_part(const struct dvm_node *n, uint64_t task, uint32_t instance)
{
	struct part *p;

	HASH_FIND(hh_task, n->by_task, &task, sizeof(task), p);
	return p && p->instance == instance ? p : NULL;
}

bool dvm_node_runs(const struct dvm_node *n, uint64_t task, uint32_t instance)
{
	const struct part *p = find_part(n, task, instance);

	return p && p->left;
}

static void on_ask(struct dvm_node *n, const struct dvm_ask *m)
{
	tell(n, find_part(n, m->task, m->instance), m);
}

/* What another node has said explains its end. False: the part was over, and is gone. */
static bool leave_doubt(struct dvm_node *n, struct part *p)
{
	if (p->doubt != OF_OTHERS)
		return true;
	p->doubt = NO_DOUBT;
	set_deadline(n, p, 0);
	if (p->left)
		return true;
	ranks_over(n, p);
	return false;
}

static void tell_part(struct dvm_node *n, struct part *p)
{
	p->end.told = true;
	if (leave_doubt(n, p))
		end_part(n, p);
}

static void pass_signal_on(struct dvm_node *n, struct part *p, int number)
{
	p->signalled = number;
	signal_part(n, p, number);
	if (number == SIGKILL)
		leave_doubt(n, p);
}

static void on_signal(struct dvm_node *n, const struct dvm_signal *m)
{
	struct part *p = find_part(n, m->task, m->instance);

	if (!p)
		return;
	if (m->number)
		pass_signal_on(n, p, (int)m->number);
	else if (p->doubt != OF_RANK && !p->ending)
		tell_part(n, p);
}

/* What is not this node's, or may be Slurm's. */
static bool is_of_others(const struct dvm_node *n, const struct part *p,
			 const struct dvm_fail *m)
{
	return !m->asked && !p->end.status && (p->held.nodes > 1 || was_continued(n));
}

static void note_fail(struct part *p, const struct dvm_fail *m)
{
	if (!p->end.status) {
		p->end.status = m->status;
		p->end.rank = m->rank;
	}
	if (!*p->why || (m->asked && !p->end.too_long))
		snprintf(p->why, sizeof(p->why), "%.*s", (int)m->why.len,
			 (const char *)m->why.data);
}

/*
 * Its PMI knows more than the ends of its processes tell. What fails because the part is
 * being ended is no reason; that a rank has aborted is, also where another node was
 * the first to say that the task fails.
 */
static void on_fail(struct dvm_node *n, const struct dvm_fail *m)
{
	bool of_others;
	struct part *p;

	HASH_FIND(hh, n->parts, &m->part, sizeof(m->part), p);
	if (!p || (p->ending && !p->failing && !m->asked))
		return;
	of_others = is_of_others(n, p, m);
	note_fail(p, m);
	if ((m->asked && !leave_doubt(n, p)) || p->doubt)
		return;
	if (of_others)
		begin_doubt(n, p, OF_OTHERS);
	else
		part_fails(n, p);
}

static void on_pmi_over(struct dvm_node *n, uint32_t number)
{
	struct part *p;

	HASH_FIND(hh, n->parts, &number, sizeof(number), p);
	if (p && p->waits_for_pmi)
		part_ended(n, p);
}

/* ---- heads that are lost ---- */

static void say_held(struct dvm_node *n, const struct part *p)
{
	const struct dvm_msg m = { .type = DVM_HELD, .held = p->held };

	send_msg(n, &m);
	if (p->failing)
		say(n, p, DVM_FAILING);
}

/* What was said before is for the head that is lost: the next hears REGISTER first. */
static void on_adopt(struct dvm_node *n)
{
	const struct part *p;

	forget_profiles(n);
	buf_clear(&n->out);
	dvm_node_register(n, &n->is);
	for (p = n->parts; p; p = p->hh.next)
		say_held(n, p);
	kept_say(n->kept, &n->out);
}

static void on_done(struct dvm_node *n, const struct dvm_started *m)
{
	struct part *p = find_part(n, m->task, m->instance);

	if (p)
		p->keep = false; /* its head does not want it */
	kept_remove(n->kept, m->task, m->instance);
}

static void on_stop(struct dvm_node *n, const struct dvm_stop *m)
{
	struct part *p;

	n->leaving = true;
	for (p = n->parts; p && !m->now; p = p->hh.next)
		end_part(n, p);
	if (m->now)
		n->ops.leave(n->arg); /* what is left is killed then */
}

/* Of a task whose part here has ended well. */
static void on_failed(struct dvm_node *n, const struct dvm_msg *m)
{
	send_msg(n, m);
	kept_add_failed(n->kept, &m->failed);
}

static int take(struct dvm_node *n, const struct dvm_msg *m)
{
	switch (m->type) {
	case DVM_PROFILE:
		return add_profile(n, &m->profile);
	case DVM_FORGET:
		forget_profile(n, m->profile.number);
		return 0;
	case DVM_LAUNCH:
		return launch(n, &m->launch);
	case DVM_SIGNAL:
		on_signal(n, &m->signal);
		return 0;
	case DVM_ASK:
		on_ask(n, &m->ask);
		return 0;
	case DVM_FAIL:
		on_fail(n, &m->fail);
		return 0;
	case DVM_FAILED:
		on_failed(n, m);
		return 0;
	case DVM_PMI_OVER:
		on_pmi_over(n, m->pmi_part.part);
		return 0;
	case DVM_LEAVE:
		n->leaving = true;
		return 0;
	case DVM_ADOPT:
		on_adopt(n);
		return 0;
	case DVM_DONE:
		on_done(n, &m->started);
		return 0;
	case DVM_STOP:
		on_stop(n, &m->stop);
		return 0;
	default:
		return -EPROTO;
	}
}

int dvm_node_input(struct dvm_node *n, const void *data, size_t len,
		   struct dvm_time now)
{
	struct dvm_msg m;
	struct cursor c;
	int rc = 0;

	n->now = now;
	cursor_init(&c, data, len);
	while (!rc && cursor_left(&c)) {
		rc = dvm_msg_unpack(&c, &m);
		rc = rc ? rc : take(n, &m);
	}
	return rc;
}

void dvm_node_register(struct dvm_node *n, const struct dvm_register *r)
{
	const struct dvm_msg m = { .type = DVM_REGISTER, .reg = *r };

	n->is = *r;
	send_msg(n, &m);
}

/* ---- turns ---- */

static void check_deadlines(struct dvm_node *n)
{
	struct part *p, *next;

	DL_FOREACH_SAFE(n->timed, p, next) {
		if (p->deadline_ms > n->now.ms)
			continue;
		if (p->doubt) {
			end_doubt(n, p);
			continue;
		}
		if (p->ending) {
			set_deadline(n, p, 0);
			signal_part(n, p, SIGKILL);
			continue;
		}
		p->end.too_long = true;
		strcpy(p->why, "its time was over");
		end_part(n, p);
	}
}

static int next_deadline(const struct dvm_node *n)
{
	const struct part *p;
	uint64_t first = UINT64_MAX, left;

	DL_FOREACH(n->timed, p)
		if (p->deadline_ms < first)
			first = p->deadline_ms;
	if (first == UINT64_MAX)
		return -1;
	left = first > n->now.ms ? first - n->now.ms : 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

void dvm_node_continued(struct dvm_node *n, struct dvm_time now)
{
	n->continued_ms = now.ms;
}

int dvm_node_turn(struct dvm_node *n, struct dvm_time now)
{
	n->now = now;
	check_deadlines(n);
	if (n->out.len)
		n->ops.send(n->arg, n->out.data, n->out.len);
	buf_clear(&n->out);
	if (n->leaving && !n->parts) {
		n->leaving = false;
		n->ops.leave(n->arg);
	}
	return next_deadline(n);
}

void dvm_node_kill_all(struct dvm_node *n)
{
	const struct rank *r;

	for (r = n->ranks; r; r = r->hh.next)
		n->ops.signal(n->arg, r->process, SIGKILL);
}

/* ---- life ---- */

int dvm_node_create(struct dvm_node **out, const struct dvm_node_ops *ops, void *arg)
{
	struct dvm_node *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->kept = kept_create();
	if (!n->kept) {
		free(n);
		return -ENOMEM;
	}
	n->ops = *ops;
	n->arg = arg;
	buf_init(&n->out, OUT_MAX);
	*out = n;
	return 0;
}

void dvm_node_destroy(struct dvm_node *n)
{
	struct profile *f, *fnext;
	struct part *p, *next;

	if (!n)
		return;
	HASH_CLEAR(hh, n->ranks);
	HASH_ITER(hh, n->parts, p, next)
		part_free(n, p);
	HASH_ITER(hh, n->profiles, f, fnext) {
		f->forgotten = true;
		drop_profile(n, f);
	}
	kept_destroy(n->kept);
	buf_free(&n->out);
	free(n);
}
