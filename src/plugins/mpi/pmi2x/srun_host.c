/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The callbacks of srun's server, in its thread: spawns, aborts, names of nodes. */
#include "slurm_compat.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/control.h"
#include "mpir_table.h"
#include "slurm_log.h"
#include "srun_private.h"

#define KILL_AGAIN_MS 2000
#define LAUNCH_MS 20000   /* for all tasks to be started before a kill */
#define LAUNCH_ASK_MS 20
#define MS_PER_S 1000
#define EXIT_CODE_MASK 0xff
#define ABORT_LINE_MAX (CONTROL_TEXT_MAX + 512)

static pid_t host_spawn(void *arg, uint32_t serial,
			const struct spawn_request *request, int *fd)
{
	const struct srun *s = arg;

	spawn_srun_unknown(request, &slurm_log);
	return spawn_srun_start(request, &s->place, fd);
}

/* The name of the node of a component's own task, or NULL. */
static const char *node_of_task(const struct component *c, uint32_t task)
{
	const slurm_step_layout_t *l = c->layout;

	for (uint32_t n = 0; n < l->node_cnt && n < c->nnodes; n++)
		for (uint32_t t = 0; t < l->tasks[n]; t++)
			if (l->tids[n][t] == task)
				return c->nodes[n];
	return NULL;
}

static const char *node_of(const struct srun *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->ncomponents; i++) {
		const struct component *c = &s->components[i];

		if (rank >= c->first_rank &&
		    rank - c->first_rank < c->layout->task_cnt)
			return node_of_task(c, rank - c->first_rank);
	}
	return NULL;
}

static bool is_over(struct srun *s, unsigned wait_ms)
{
	struct pollfd over = { .fd = s->over, .events = POLLIN };

	return poll(&over, 1, (int)wait_ms) > 0;
}

static int ask_to_kill(const struct srun *s)
{
	return compat_kill_step(s->place.job_id, s->step_id) ? errno : 0;
}

/* Ranks whose program has called abort may clean up; whether the step has ended. */
static bool ended_by_abort(struct srun *s)
{
	return COMPAT_ABORT_SIGNAL != SIGKILL && s->called_abort &&
		!compat_signal_step(s->place.job_id, s->step_id,
				    COMPAT_ABORT_SIGNAL) &&
		is_over(s, slurm_conf.kill_wait * MS_PER_S + KILL_AGAIN_MS);
}

/* The controller knows of no such step any more. */
static bool is_gone(int error)
{
	return error == ESLURM_ALREADY_DONE || error == ESLURM_INVALID_JOB_ID;
}

/*
 * slurmd may start tasks of a step that has just been killed, or never; srun then
 * waits KillWait for them. So a step is killed once it has been launched. True: it
 * has ended meanwhile.
 */
static bool is_over_when_launched(struct srun *s)
{
	for (unsigned ms = 0; ms < LAUNCH_MS && !all_tasks_are_started();
	     ms += LAUNCH_ASK_MS)
		if (is_over(s, LAUNCH_ASK_MS))
			return true;
	return false;
}

/*
 * Asking Slurm's controller blocks, so it has a thread of its own. It is asked until
 * the step has ended: it ends no step of a suspended job, and it, or munge, may be
 * away for a while.
 */
static void *kill_step(void *arg)
{
	struct srun *s = arg;
	bool said = false;
	int error;

	if (is_over_when_launched(s) || ended_by_abort(s))
		return NULL;
	while ((error = ask_to_kill(s)) && !is_gone(error)) {
		if (!said && error != ESLURM_TRANSITION_STATE_NO_UPDATE) {
			log_error(&slurm_log,
				  "Slurm's controller did not end step %s (%s); srun asks again, or use: scancel %s",
				  s->launch.jobid, slurm_strerror(error),
				  s->launch.jobid);
			said = true;
		}
		if (is_over(s, KILL_AGAIN_MS))
			break;
	}
	return NULL;
}

/* Other lines follow, of every rank: it is said again when srun ends. */
static void note_cause(struct srun *s, const char *text)
{
	if (!s->cause)
		s->cause = strdup(text);
}

static void log_abort(struct srun *s, uint32_t rank, int code, const char *text)
{
	const char *node = node_of(s, rank);
	char line[ABORT_LINE_MAX];

	snprintf(line, sizeof(line),
		 "rank %u on node %s called abort%s%s (exit code %d)", rank,
		 node ? node : "?", text && text[0] ? ": " : "",
		 text && text[0] ? text : "", code);
	log_error(&slurm_log, "%s", line);
	note_cause(s, line);
}

static void log_end(struct srun *s, const char *why)
{
	log_error(&slurm_log, "ending step %s: %s", s->launch.jobid, why);
	note_cause(s, why);
}

static void host_abort(void *arg, uint32_t rank, int code, const char *text)
{
	struct srun *s = arg;

	if (s->aborted)
		return;
	if (rank == CONTROL_NO_RANK)
		log_end(s, text);
	else
		log_abort(s, rank, code, text);
	s->called_abort = rank != CONTROL_NO_RANK;
	/* An exit code of 0 would hide that the step was aborted. */
	s->exit_code = code & EXIT_CODE_MASK ? code & EXIT_CODE_MASK : 1;
	s->aborted = !pthread_create(&s->killer, NULL, kill_step, s);
}

static void host_report(void *arg, const char *text)
{
	log_error(&slurm_log, "%s", text);
	note_cause(arg, text);
}

static void host_gave_up(void *arg)
{
	struct srun *s = arg;

	s->gave_up = true;
}

static void host_trace(void *arg, uint32_t position, const void *data,
		       size_t len)
{
	struct srun *s = arg;

	pthread_mutex_lock(&s->trace_lock);
	trace_file_add(s->trace, position, data, len);
	pthread_mutex_unlock(&s->trace_lock);
}

/* Asked when all components have ended. */
static bool host_traces_missing(void *arg)
{
	const struct srun *s = arg;

	return trace_file_missing(s->trace);
}

/* ---- nodes in the order of the tree: by their lowest rank ---- */

struct place {
	const char *name;
	uint32_t lowest;
};

static int by_lowest(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->lowest < y->lowest ? -1 : x->lowest > y->lowest;
}

static uint32_t host_nodes(void *arg)
{
	const struct srun *s = arg;
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->ncomponents; i++) {
		const slurm_step_layout_t *l = s->components[i].layout;

		for (uint32_t n = 0; n < l->node_cnt; n++)
			count += l->tasks[n] > 0;
	}
	return count;
}

static uint32_t lowest_task(const slurm_step_layout_t *l, uint32_t node)
{
	uint32_t lowest = UINT32_MAX;

	for (uint32_t t = 0; t < l->tasks[node]; t++)
		if (l->tids[node][t] < lowest)
			lowest = l->tids[node][t];
	return lowest;
}

/* Made again when another component has come. */
static void order_places(struct srun *s)
{
	uint32_t count = 0;

	free(s->places);
	s->nplaces = 0;
	s->places_of = s->ncomponents;
	s->places = calloc(host_nodes(s) + 1, sizeof(*s->places));
	for (uint32_t i = 0; s->places && i < s->places_of; i++) {
		const struct component *c = &s->components[i];

		for (uint32_t n = 0; n < c->layout->node_cnt && n < c->nnodes;
		     n++) {
			if (!c->layout->tasks[n])
				continue;
			s->places[count++] = (struct place){
				c->nodes[n],
				c->first_rank + lowest_task(c->layout, n),
			};
		}
	}
	if (s->places)
		qsort(s->places, count, sizeof(*s->places), by_lowest);
	s->nplaces = count;
}

static const struct place *find_place(struct srun *s, uint32_t position)
{
	if (!s->places || s->places_of != s->ncomponents)
		order_places(s);
	return position < s->nplaces ? &s->places[position] : NULL;
}

static const char *host_node_name(void *arg, uint32_t position)
{
	const struct place *p = find_place(arg, position);

	return p ? p->name : "?";
}

static bool host_started(void *arg, uint32_t position)
{
	const struct place *p = find_place(arg, position);

	return p && task_is_started(p->lowest);
}

void srun_host_make(struct srun *s)
{
	s->host = (struct srun_server_host){
		.spawn = host_spawn,
		.abort = host_abort,
		.report = host_report,
		.gave_up = host_gave_up,
		.trace = s->trace ? host_trace : NULL,
		.traces_missing = s->trace ? host_traces_missing : NULL,
		.nodes = host_nodes,
		.node_name = host_node_name,
		.started = host_started,
		.arg = s,
	};
}
