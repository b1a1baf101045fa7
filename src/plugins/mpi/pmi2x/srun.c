/* SPDX-License-Identifier: GPL-2.0-or-later */
/* srun's side: the step's secret, its components, and the life of its server. */
#include "slurm_compat.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conf.h"
#include "lend_offer.h"
#include "libio/peer.h"
#include "slurm_log.h"
#include "srun_private.h"
#include "srun_options.h"

#define HANDSHAKE_MS 10000

extern char **environ;

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
	srun_host_make(s);
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

/* Read the variables of a spawning srun and of the user. 0, or a negative errno after an error line. */
static int inherit(struct srun *s)
{
	const char *what = "";
	int rc = launch_env_inherit(&s->launch, &what);

	if (rc)
		log_error(&slurm_log,
			  "%s in the environment is damaged: unset it", what);
	else if (!lend_offer_check(&slurm_log))
		rc = -EINVAL;
	return rc;
}

static int srun_create(struct srun **out, const mpi_step_info_t *info)
{
	struct srun *s = calloc(1, sizeof(*s));
	struct conf job;
	int rc;

	if (!s)
		return -ENOMEM;
	s->over = eventfd(0, EFD_CLOEXEC);
	read_overrides(&job);
	rc = inherit(s);
	if (!rc && s->over < 0)
		rc = -EMFILE;
	if (!rc)
		rc = srun_library_open(&s->library, SRUN_LIBRARY,
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
		s->launch.universe_size = launch_universe(
			getenv("SLURM_JOB_CPUS_PER_NODE"),
			getenv("SLURM_CPUS_PER_TASK"));
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
