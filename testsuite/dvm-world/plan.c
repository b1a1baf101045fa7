/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that a seed draws, and the faults. */
#include "disk.h"

#define FAULTS_MS (600 * SECOND) /* virtual time in which faults begin, at most */
#define QUIET_MS (120 * SECOND)  /* after the end of all clients: nothing may follow */

#define LEASE_MS 45000
#define MARGIN_MS 10000
#define GRACE_MS 2000
#define ASK_MS 5000

enum fault {
	KILL_HEAD, KILL_DAEMON, STOP_MACHINE, CUT, CUT_TWICE, SECOND_HEAD, DISK_FAILS, DISK_DAMAGES,
	NODE_IS_FULL, ZYGOTE_STANDS_STILL, FAULTS,
	BREAK_LINK, /* of a tree */
};

/* As src/dvm/head/head_main.c does it. */
static void draw_lease(struct plan *p)
{
	uint64_t orphan_ms = p->orphan ? p->orphan_s * SECOND : 0;
	uint64_t early_ms = orphan_ms / 8 < ASK_MS ? orphan_ms / 8 : ASK_MS;

	p->lease_ms = orphan_ms + early_ms > LEASE_MS ? (uint32_t)(orphan_ms + early_ms) :
							LEASE_MS;
	p->grace_ms = p->orphan ? GRACE_MS : 0;
	p->away_ms = p->lease_ms + p->grace_ms + MARGIN_MS;
}

void plan_draw(struct world *w)
{
	struct plan *p = &w->plan;

	p->latency_ms = draw_once_in(w, 4) ? draw(w, 3 * SECOND) : draw(w, 20);
	p->orphan = draw_once_in(w, 2);
	p->orphan_s = (uint32_t)draw_between(w, 5, 300);
	draw_lease(p);
	p->once = draw_once_in(w, 3);
	p->fast = draw_once_in(w, 6);
	p->tasks = 2 + (uint32_t)draw(w, 20);
	p->width = (uint32_t)(w->seed % 3 == 1 ? 1 + w->seed / 3 % 2 : 0); /* others stay as they are */
	p->calm_ms = w->ms + draw(w, FAULTS_MS);
	for (unsigned i = 0; i < MACHINES; i++)
		w->machines[i].clock_ms = draw(w, 1000 * SECOND);
}

/* ---- faults ---- */

static void on_back(struct world *w, void *arg, uint64_t machine)
{
	w->machines[machine].down = false;
	links_changed(w);
	trace(w, "machine %u is up again", (unsigned)machine);
}

static void stop_machine(struct world *w, unsigned machine)
{
	if (w->machines[machine].down)
		return;
	trace(w, "machine %u stops", machine);
	w->silent = w->machines[machine].down = true;
	for (uint32_t i = 0; i < w->ndaemons; i++)
		if (daemon_machine(w->daemons[i]) == machine)
			daemon_vanish(w->daemons[i]);
	for (uint32_t i = 0; i < w->nheads; i++)
		if (head_lives(w->heads[i]) && head_machine(w->heads[i]) == machine)
			head_vanish(w->heads[i]);
	disk_lose_machine(w->disk, machine);
	w->weak = w->weak || (w->plan.fast && machine >= NODES);
	links_lose_machine(w, machine);
	links_changed(w);
	after(w, draw_between(w, SECOND, 200 * SECOND), on_back, NULL, machine);
}

static void on_mended(struct world *w, void *arg, uint64_t machine)
{
	if (w->machines[machine].cut_until != w->ms)
		return;
	w->machines[machine].cut_until = 0;
	trace(w, "machine %u is cut off no more", (unsigned)machine);
	links_changed(w);
}

static void cut(struct world *w, unsigned machine, uint64_t ms)
{
	trace(w, "machine %u is cut off for %.1f s", machine, ms / 1000.0);
	w->silent = true;
	w->machines[machine].cut_until = w->ms + ms;
	w->machines[machine].mute = false;
	links_changed(w);
	after(w, ms, on_mended, NULL, machine);
}

static uint64_t draw_cut(struct world *w)
{
	static const uint64_t seconds[] = { 1, 10, 60, 90, 300 };

	return draw_between(w, 1, SECOND * seconds[draw(w, 5)]);
}

static void on_cut_again(struct world *w, void *arg, uint64_t machine)
{
	cut(w, (unsigned)machine, draw_between(w, 60 * SECOND, 300 * SECOND));
}

static void on_cut_twice(struct world *w, void *arg, uint64_t machine)
{
	uint64_t ms = draw_between(w, 5 * SECOND, 44 * SECOND);

	cut(w, (unsigned)machine, ms);
	after(w, ms + draw(w, 10 * SECOND), on_cut_again, NULL, machine);
}

/* The machine's last messages come late, and then nothing for long. */
static void cut_twice(struct world *w, unsigned machine)
{
	trace(w, "what machine %u sends waits", machine);
	w->silent = w->machines[machine].mute = true;
	after(w, draw(w, 5 * SECOND), on_cut_twice, NULL, machine);
}

/* The user takes the first head for dead. */
static void start_second_head(struct world *w)
{
	unsigned machine = NODES + (unsigned)draw(w, HEADS);

	if (!head_now(w) || w->machines[machine].down)
		return;
	w->weak = w->weak || w->plan.fast;
	head_start(w, machine, draw_once_in(w, 2));
}

static void on_fine(struct world *w, void *arg, uint64_t number)
{
	disk_set_weather(w->disk, WEATHER_FINE);
}

static void spoil_disk(struct world *w)
{
	disk_set_weather(w->disk, (enum weather)(1 + draw(w, WEATHERS - 1)));
	w->weak = w->weak || w->plan.fast;
	after(w, draw(w, 120 * SECOND), on_fine, NULL, 0);
}

/* A head cannot see damage that is done while it lives. */
static void damage(struct world *w)
{
	struct head_process *h;

	while ((h = head_now(w)))
		head_kill(h);
	if (disk_damage(w->disk, "journal"))
		w->damaged = true;
}

/* Other users of the machine have its processes, descriptors and memory. */
static void fill(struct world *w, unsigned machine)
{
	struct machine *m = &w->machines[machine];
	uint64_t until = w->ms + draw_cut(w);

	m->is_hard = draw_once_in(w, 2);
	m->full_until = until > m->full_until ? until : m->full_until;
	trace(w, "machine %u is full for %.1f s%s", machine, (m->full_until - w->ms) / 1000.0,
	      m->is_hard ? ", and starts nothing" : "");
}

static void on_fault(struct world *w, void *arg, uint64_t fault)
{
	struct daemon *d = daemon_on(w, (unsigned)draw(w, NODES));
	struct head_process *h = head_now(w);

	switch ((enum fault)fault) {
	case KILL_HEAD:
		if (h)
			head_kill(h);
		break;
	case KILL_DAEMON:
		if (d) {
			trace(w, "%s is killed", daemon_name(d));
			daemon_kill(d);
		}
		break;
	case STOP_MACHINE:
		stop_machine(w, (unsigned)draw(w, CLIENT_MACHINE));
		break;
	case SECOND_HEAD: start_second_head(w); break;
	case DISK_FAILS: spoil_disk(w); break;
	case DISK_DAMAGES: damage(w); break;
	case NODE_IS_FULL: fill(w, (unsigned)draw(w, NODES)); break;
	case ZYGOTE_STANDS_STILL:
		if (d)
			daemon_stand_still(d, draw_cut(w));
		break;
	case BREAK_LINK:
		if (d)
			daemon_break_link(d);
		break;
	case CUT_TWICE:
		cut_twice(w, h && !draw_once_in(w, 4) ? head_machine(h) :
						       (unsigned)draw(w, CLIENT_MACHINE));
		break;
	default:
		cut(w, (unsigned)draw(w, CLIENT_MACHINE), draw_cut(w));
	}
}

/* ---- the end ---- */

static bool anything_runs(const struct world *w)
{
	for (uint32_t i = 0; i < w->nranks; i++)
		if (w->ranks[i].runs)
			return true;
	for (uint32_t i = 0; i < w->ndaemons; i++)
		if (!daemon_is_idle(w->daemons[i]))
			return true;
	return false;
}

/* As a user does it, when the node is all right again. */
static void undrain(struct world *w)
{
	for (unsigned i = 0; i < NODES; i++)
		if (!machine_is_full(w, i))
			heads_undrain(w, i);
}

static void on_look(struct world *w, void *arg, uint64_t quiet)
{
	bool idle;

	undrain(w);
	idle = clients_are_done(w) && !anything_runs(w) && w->published &&
		    head_is_idle(w->published);

	if (idle && quiet)
		w->over = true;
	else
		after(w, idle ? QUIET_MS : 5 * SECOND, on_look, NULL, idle);
}

void plan_begin(struct world *w)
{
	uint32_t faults = (uint32_t)draw(w, 8);

	clients_start(w);
	head_start(w, NODES + (unsigned)draw(w, HEADS), false);
	for (uint32_t i = 0; i < faults; i++)
		after(w, draw(w, w->plan.calm_ms - w->ms), on_fault, NULL, draw(w, FAULTS));
	for (uint64_t i = w->plan.width ? draw(w, 8) : 0; i > 0; i--)
		after(w, draw(w, w->plan.calm_ms - w->ms), on_fault, NULL,
		      draw_once_in(w, 2) ? BREAK_LINK : KILL_DAEMON);
	after(w, w->plan.calm_ms - w->ms, on_look, NULL, 0);
}
