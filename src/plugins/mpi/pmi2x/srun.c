/* SPDX-License-Identifier: GPL-2.0-or-later */
/* srun's side: the step's secret, its server, aborts and spawns. */
#include "slurm_compat.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conf.h"
#include "launch_env.h"
#include "srun_library.h"
#include "libio/peer.h"
#include "libpmi/control.h"
#include "mpir_table.h"
#include "slurm_log.h"
#include "spawn_srun.h"
#include "srun.h"
#include "srun_options.h"
#include "trace_file.h"

#define HANDSHAKE_MS 10000
#define KILL_AGAIN_MS 2000
#define LAUNCH_MS 20000   /* for all tasks to be started before a kill */
#define LAUNCH_ASK_MS 20
#define MS_PER_S 1000
#define EXIT_CODE_MASK 0xff
#define ABORT_LINE_MAX (CONTROL_TEXT_MAX + 512)
#define COMPONENTS_MAX 128 /* Slurm's own limit of het components */

extern char **environ;

/* A het component: Slurm's layout of it, and where its ranks start. */
struct component {
	const slurm_step_layout_t *layout;
	char **nodes; /* names, in the layout's order */
	uint32_t nnodes;
	uint32_t first_rank;
};

struct srun {
	const struct srun_library *library;
	struct srun_server *server;
	struct launch_env launch;
	struct spawn_place place;
	char srun_path[PATH_MAX];
	struct component components[COMPONENTS_MAX];
	/* The server's thread reads these two, and components below the count. */
	_Atomic uint32_t ncomponents;
	_Atomic bool aborted; /* killer is there, exit_code holds */
	bool called_abort;    /* by a rank, not by us; set before aborted */
	uint32_t running; /* components that have not ended */
	uint32_t step_id;
	pthread_t killer; /* ends the step after an abort */
	int over;         /* eventfd, written for the killer: the step has ended */
	int exit_code;
	char *cause;      /* the first that the user was told of a failure */
	bool gave_up;     /* ranks have ended for it */
	struct srun_server_host host;
	struct place *places; /* the server's thread: nodes by position */
	uint32_t nplaces;
	uint32_t places_of;   /* how many components they are of */
	struct trace_file *trace; /* NULL: none is wanted. Once srun's server runs,
	                             its thread and prelaunch use it */
	pthread_mutex_t trace_lock;
};

/* ---- what srun's server asks of its host, in its thread ---- */

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

/* ---- the object ---- */

/* Host lists of info keys and of Slurm, as names. */
static char **expand_hosts(const char *list, uint32_t *count)
{
	slurm_hostlist hosts = hostlist_create(list);
	char **names;
	int n = hosts ? hostlist_count(hosts) : 0;

	*count = 0;
	names = n > 0 ? calloc((size_t)n + 1, sizeof(*names)) : NULL;
	for (int i = 0; names && i < n; i++)
		names[i] = hostlist_shift(hosts);
	if (names)
		*count = (uint32_t)n;
	if (hosts)
		hostlist_destroy(hosts);
	return names;
}

/* The running srun itself, when this process is one. */
static const char *find_srun(struct srun *s)
{
	ssize_t len = readlink("/proc/self/exe", s->srun_path,
			       sizeof(s->srun_path) - 1);
	const char *base;

	if (len <= 0)
		return "srun";
	s->srun_path[len] = '\0';
	base = strrchr(s->srun_path, '/');
	return base && !strcmp(base, "/srun") ? s->srun_path : "srun";
}

/* Processes that the allocation can hold; 0 when its environment says nothing. */
static uint32_t universe_size(void)
{
	const char *cpus = getenv("SLURM_JOB_CPUS_PER_NODE");
	const char *per_task = getenv("SLURM_CPUS_PER_TASK");
	uint32_t each = per_task ? launch_cpus(per_task) : 1;

	return cpus && each ? launch_cpus(cpus) / each : 0;
}

static int make_jobid(struct srun *s, const mpi_step_info_t *info)
{
	s->step_id = info->step_id.step_id;
	s->place.job_id = launch_leader(info->step_id.job_id, info->het_job_id);
	s->launch.jobid = launch_jobid(s->place.job_id, s->step_id);
	s->place.jobid = s->launch.jobid;
	return s->launch.jobid ? 0 : -ENOMEM;
}

/*
 * Did another process make this socket pair? A variable that is left from
 * elsewhere may name any descriptor of this srun, which is not ours to take.
 */
static bool is_from_spawner(int fd)
{
	struct ucred maker;

	return fd > STDERR_FILENO && !peer_credentials(fd, &maker) &&
	       maker.pid > 0 && maker.pid != getpid();
}

/* The pair to the srun that spawned this one, or -1. */
static int take_parent_fd(void)
{
	const char *text = getenv(LAUNCH_SPAWN_FD);
	int fd = text ? atoi(text) : -1;

	unsetenv(LAUNCH_SPAWN_FD);
	if (!is_from_spawner(fd) || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return fd;
}

static int start_srun_server(struct srun *s)
{
	struct srun_server_options options = {
		.secret = s->launch.secret,
		.port_seed = s->launch.port_seed,
		.jobid = s->launch.jobid,
		.build = s->library->build,
		.parent_fd = take_parent_fd(),
		.handshake_ms = HANDSHAKE_MS,
		.no_kill = s->launch.no_kill,
	};
	int rc;

	if (slurm_conf.srun_port_range) {
		options.port_first = slurm_conf.srun_port_range[0];
		options.port_last = slurm_conf.srun_port_range[1];
	}
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
	rc = s->library->server_start(&s->server, &options, &s->host,
				      &slurm_log);
	secret_forget(&options.secret);
	if (!rc)
		s->launch.srun_port = s->library->server_port(s->server);
	return rc;
}

/* The user's choice counts first, then the site's. */
static void open_trace(struct srun *s, const struct conf *job)
{
	const char *wanted = getenv(TRACE_ENV) ? job->trace_dir : NULL;
	char *dir = wanted ? NULL : conf_trace_dir();

	pthread_mutex_init(&s->trace_lock, NULL);
	if (!wanted)
		wanted = dir ? dir : "";
	if (wanted[0])
		s->trace = trace_file_create(wanted, s->launch.jobid,
					     &slurm_log);
	s->launch.trace = s->trace != NULL;
	free(dir);
}

static void srun_free(struct srun *s)
{
	trace_file_close(s->trace);
	pthread_mutex_destroy(&s->trace_lock);
	if (s->over >= 0)
		close(s->over);
	for (uint32_t i = 0; i < s->ncomponents; i++) {
		struct component *c = &s->components[i];

		for (uint32_t n = 0; n < c->nnodes; n++)
			free(c->nodes[n]);
		free(c->nodes);
	}
	launch_env_free(&s->launch);
	free(s->places);
	free(s->cause);
	free(s);
}

/*
 * Options that agents silently leave at their default are reported where the user sees
 * them.
 */
static void read_overrides(struct conf *job)
{
	options_defaults(job);
	conf_check(job, environ);
}

static int srun_create(struct srun **out, const mpi_step_info_t *info)
{
	struct srun *s = calloc(1, sizeof(*s));
	const char *what = "";
	struct conf job;
	int rc;

	if (!s)
		return -ENOMEM;
	s->over = eventfd(0, EFD_CLOEXEC);
	read_overrides(&job);
	rc = launch_env_inherit(&s->launch, &what);
	if (rc)
		log_error(&slurm_log,
			  "%s in the environment is damaged: unset it", what);
	if (!rc && s->over < 0)
		rc = -EMFILE;
	if (!rc)
		rc = srun_library_open(&s->library, LAUNCHER_LIBRARY,
					   &slurm_log);
	if (!rc)
		rc = make_jobid(s, info);
	if (!rc)
		rc = secret_create(&s->launch.secret);
	if (!rc)
		rc = port_seed_create(&s->launch.port_seed);
	if (!rc)
		rc = run_create(&s->launch.run);
	if (!rc) {
		s->launch.universe_size = universe_size();
		s->launch.kill = srun_kill_on_bad_exit();
		s->place.universe_size = s->launch.universe_size;
		s->place.srun = find_srun(s);
		s->place.expand = expand_hosts;
		s->launch.no_kill = srun_no_kill();
		s->launch.program = srun_program();
		open_trace(s, &job);
		rc = start_srun_server(s);
	}
	if (rc)
		srun_free(s);
	else
		*out = s;
	return rc;
}

static int add_component(struct srun *s, const mpi_step_info_t *info)
{
	struct component *c;

	if (s->ncomponents == COMPONENTS_MAX)
		return -E2BIG;
	c = &s->components[s->ncomponents];
	c->layout = info->step_layout;
	c->first_rank = info->het_job_task_offset == NO_VAL ?
		0 : info->het_job_task_offset;
	c->nodes = expand_hosts(c->layout->node_list, &c->nnodes);
	if (!c->nodes)
		return -ENOMEM;
	if (s->ncomponents++ == 0) {
		s->place.nodes = c->nodes;
		s->place.nnodes = c->nnodes;
	}
	s->running++;
	pthread_mutex_lock(&s->trace_lock);
	trace_file_expect(s->trace, c->nnodes);
	pthread_mutex_unlock(&s->trace_lock);
	return 0;
}

struct srun *srun_enter(struct srun **s, const mpi_step_info_t *info,
			char ***env)
{
	int rc = *s ? 0 : srun_create(s, info);

	if (!rc)
		rc = add_component(*s, info);
	if (!rc)
		rc = launch_env_write(&(*s)->launch, env);
	if (!rc)
		return *s;
	log_error(&slurm_log, "cannot prepare the step: %s%s", strerror(-rc),
		  rc == -EADDRINUSE ?
		  "; SrunPortRange in slurm.conf has no free port" : "");
	return NULL;
}

struct srun *srun_leave(struct srun **s)
{
	struct srun *last = *s;

	if (!last || --last->running > 0)
		return NULL;
	*s = NULL;
	return last;
}

int srun_end(struct srun *s)
{
	int code;

	if (!s)
		return 0;
	/* Steps that an aborted step has spawned end with it. */
	s->library->server_stop(s->server, s->aborted ? 0 : UINT32_MAX);
	eventfd_write(s->over, 1);
	if (s->aborted)
		pthread_join(s->killer, NULL);
	/* Ranks may have gone on with an error, and ended well. */
	if (s->cause && (s->aborted || s->gave_up))
		log_error(&slurm_log, "step %s failed: %s", s->launch.jobid,
			  s->cause);
	code = s->exit_code;
	srun_free(s);
	return code;
}
