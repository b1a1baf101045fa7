/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slurmstepd's side: describes the step to its agent, and has it started. */
#include "slurm_compat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/setup.h"
#include "foreign_env.h"
#include "libio/clock.h"
#include "libpmi/cause.h"
#include "network.h"
#include "pmi2x-build.h"
#include "slurm_log.h"
#include "supervisor/process_time.h"
#include "stepd_private.h"
#include "topology_env.h"
#include "topology_file.h"

#define MS_PER_S 1000
#define STATUS_UNKNOWN (-1) /* of a task that Slurm has not waited for */
#define RANK_FD 60 /* PMI_FD: above what slurmstepd has, below FD_SETSIZE */
#define RESERVED_PORTS_NAME "SLURM_STEP_RESV_PORTS"

static void fail(struct stepd *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void fail(struct stepd *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&s->failure, fmt, ap) < 0)
		s->failure = NULL;
	va_end(ap);
	log_error(&slurm_log, "%s", s->failure ? s->failure : "no memory");
}

/* ---- what the agent asks of its host ---- */

static int host_node_address(void *arg, uint32_t node_id, bool may_block,
			     struct sockaddr_storage *out)
{
	const struct stepd *s = arg;

	return node_address_of(s->nodes.names[node_id], may_block, out);
}

static int host_connect_back(void *arg, uint32_t node_id, const void *data,
			  size_t len)
{
	const struct stepd *s = arg;

	return connect_back_send(&s->connect_back, s->nodes.names[node_id],
				 node_id, data, len);
}

static void host_kill_step(void *arg, const char *why)
{
	const struct stepd *s = arg;

	log_error(&slurm_log, "ending step %s: %s", s->jobid, why);
	if (compat_kill_step(s->job, s->step_id))
		log_error(&slurm_log,
			  "Slurm's controller did not end step %s; use: scancel %s",
			  s->jobid, s->jobid);
}

/* False, too, when the controller does not say. */
static bool host_job_is_over(void *arg)
{
	const struct stepd *s = arg;
	job_info_msg_t *jobs = NULL;
	bool over = true;

	if (compat_load_job(&jobs, s->job))
		return errno == ESLURM_INVALID_JOB_ID;
	for (uint32_t i = 0; i < jobs->record_count; i++)
		over &= jobs->job_array[i].job_id != s->job ||
			(jobs->job_array[i].job_state & JOB_STATE_BASE) >
				JOB_SUSPENDED;
	slurm_free_job_info_msg(jobs);
	return over;
}

/* Slurm's record of the task that is the rank in a slot, or NULL. */
static const stepd_step_task_info_t *task_of(const struct stepd *s,
					     uint32_t slot)
{
	const stepd_step_rec_t *step = s->record;
	uint32_t count, first = step->het_job_task_offset;
	const uint32_t *ranks = layout_ranks_at(s->nodes.layout,
						s->step.position, &count);

	if (first == NO_VAL)
		first = 0;
	for (uint32_t i = 0; slot < count && i < step->node_tasks; i++)
		if (first + step->task[i]->gtid == ranks[slot])
			return step->task[i];
	return NULL;
}

/*
 * slurmstepd's main thread writes the status when it has waited for the task. No
 * status of a process is what stands there before.
 */
static bool host_rank_exit(void *arg, uint32_t slot, struct pmi_exit *end)
{
	const stepd_step_task_info_t *task = task_of(arg, slot);

	if (!task)
		return false;
	end->status = __atomic_load_n(&task->estatus, __ATOMIC_ACQUIRE);
	end->by_launcher = __atomic_load_n(&task->killed_by_cmd,
					   __ATOMIC_RELAXED);
	return end->status != STATUS_UNKNOWN;
}

static pid_t host_rank_pid(void *arg, uint32_t slot)
{
	const stepd_step_task_info_t *task = task_of(arg, slot);

	return task && task->pid > 0 ? task->pid : 0;
}

/* ---- from Slurm's records to the engine's ---- */

/* The name of the step; what follows from it is not the environment's to say. */
static int name_step(struct stepd *s, const stepd_step_rec_t *step)
{
	s->job = launch_leader(step->step_id.job_id, step->het_job_id);
	s->step_id = step->step_id.step_id;
	s->jobid = launch_jobid(s->job, s->step_id);
	if (!s->jobid)
		fail(s, "no memory for the name of the step");
	return s->jobid ? 0 : -ENOMEM;
}

/* The step manager prepares a step before it tells the plugin the number. */
static bool is_prepared_for(const struct stepd *s, bool is_async)
{
	const char *step = strchr(s->jobid, '.');

	if (is_async && step)
		return !strncmp(s->launch.jobid, s->jobid, (size_t)(step - s->jobid) + 1);
	return !strcmp(s->launch.jobid, s->jobid);
}

/* 0, or a negative errno after fail(). */
static int read_launch(struct stepd *s, const stepd_step_rec_t *step,
		       char ***env)
{
	const char *what = "";
	int rc = launch_env_take(&s->launch, env, &what);

	if (step->msg) /* Slurm has made *env from it, and keeps both */
		launch_env_wipe(step->msg->env);
	if (rc == -ENOENT && compat_is_async(step))
		fail(s, "the step manager has not prepared this step of srun --async: install mpi_pmi2x.so of the same version on all nodes");
	else if (rc == -ENOENT)
		fail(s, "srun has not prepared this step: install mpi_pmi2x.so of the same version where srun runs");
	else if (rc)
		fail(s, "the value of %s in the step's environment is damaged (%s): start the step again, without changing it",
		     what, strerror(-rc));
	if (rc || is_prepared_for(s, compat_is_async(step)))
		return rc;
	fail(s, "this is step %s, and the environment says that it is step %s: start the step again, without changing it",
	     s->jobid, s->launch.jobid);
	return -EINVAL;
}

/*
 * The options of srun --async: the step manager does not tell a plugin of them, but they
 * are in the launch message and in the environment of the step.
 */
static void read_async(struct stepd *s, const stepd_step_rec_t *step, char **env)
{
	if (!compat_is_async(step))
		return;
	s->launch.universe_size = launch_universe(
		getenvp(env, "SLURM_JOB_CPUS_PER_NODE"),
		getenvp(env, "SLURM_CPUS_PER_TASK"));
	if (compat_kills_on_bad_exit(step))
		s->launch.kill = LAUNCH_KILL_YES;
}

/* A spawned step knows its applications by its commands. */
static int read_apps(struct stepd *s, const stepd_step_rec_t *step)
{
	int rc = 0;

	if (!s->launch.spawner_jobid)
		rc = step_apps_read(&s->apps, step, layout_ranks(s->nodes.layout));
	if (rc)
		fail(s, "no memory for the applications of the step");
	return rc;
}

static int read_layout(struct stepd *s, const stepd_step_rec_t *step)
{
	const char *why = "";
	int rc = step_layout_read(&s->nodes, step, &why);

	if (rc == -ENOMEM)
		fail(s, "no memory for the layout of the step");
	else if (rc)
		fail(s, "%s: rebuild the plugin from the source of the installed Slurm",
		     why);
	return rc;
}

static void describe_step(struct stepd *s, const struct conf *conf,
			  const stepd_step_rec_t *step, char **env)
{
	const char *ports = getenvp(env, RESERVED_PORTS_NAME);
	uint32_t ranks = layout_ranks(s->nodes.layout);
	bool spawned = s->launch.spawner_jobid != NULL;

	s->reserved_ports = ports ? strdup(ports) : NULL;
	s->step = (struct pmi_step){
		.jobid = s->jobid,
		.layout = s->nodes.layout,
		.position = layout_position(s->nodes.layout, s->nodes.node_id),
		.tree_width = conf->tree_width,
		.universe_size = s->launch.universe_size > ranks ?
			s->launch.universe_size : ranks,
		.app_sizes = spawned ? s->launch.app_sizes : s->apps.sizes,
		.app_numbers = s->apps.numbers,
		.napps = spawned ? s->launch.napps : s->apps.count,
		.spawned = spawned,
		.spawner_jobid = s->launch.spawner_jobid,
		.reserved_ports = s->reserved_ports,
		.preput = s->launch.preput,
		.preput_len = s->launch.preput_len,
		.debugged = step->flags & LAUNCH_PARALLEL_DEBUG,
		.build = PMI2X_BUILD,
		.node_names = (const char *const *)s->nodes.names,
	};
}

/* srun as slurmd saw it when the launch message came. */
static void srun_address(struct agent_options *o, const struct stepd *s,
			     const stepd_step_rec_t *step)
{
	const srun_info_t *srun = step->sruns ? list_peek(step->sruns) : NULL;

	if (!srun || !s->launch.srun_port)
		return;
	memcpy(&o->launcher, &srun->resp_addr, sizeof(o->launcher));
	if (o->launcher.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&o->launcher)->sin6_port =
			htons(s->launch.srun_port);
	else if (o->launcher.ss_family == AF_INET)
		((struct sockaddr_in *)&o->launcher)->sin_port =
			htons(s->launch.srun_port);
}

/* Choose what the first node reports when its ranks use no PMI. */
static void describe_program(struct agent_options *o, const struct stepd *s)
{
	static const struct {
		bool mpi; /* srun starts it */
		enum cause_wrapper wrapper;
	} kinds[] = {
		[LAUNCH_PROGRAM_OTHER] = { false, WRAPPER_PERHAPS },
		[LAUNCH_PROGRAM_MPI] = { true, WRAPPER_NONE },
		[LAUNCH_PROGRAM_PMIX] = { true, WRAPPER_NONE },
		[LAUNCH_PROGRAM_WRAPPER] = { false, WRAPPER_OF_MPICH },
	};

	if (s->step.position)
		return;
	o->tell_unspoken = kinds[s->launch.program].mpi &&
			   layout_ranks(s->nodes.layout) > 1;
	o->wrapper = kinds[s->launch.program].wrapper;
}

static void describe_agent(struct agent_options *o, const struct stepd *s,
			   const struct conf *conf,
			   const stepd_step_rec_t *step)
{
	agent_options_init(o);
	o->secret = s->launch.secret;
	o->port_seed = s->launch.port_seed;
	conf_ports(conf, &o->port_first, &o->port_last);
	srun_address(o, s, step);
	o->region_size = (uint64_t)conf->region_mib << 20;
	o->buffer_limit = (uint64_t)conf->buffer_mib << 20;
	o->handshake_ms = conf->handshake_s * MS_PER_S;
	o->connect_ms = conf->connect_s * MS_PER_S;
	o->drain_ms = conf->drain_s * MS_PER_S;
	o->stays = true;
	o->dead_peer_ms = conf->dead_peer_s * MS_PER_S;
	o->stall_ms = conf->stall_s * MS_PER_S;
	o->collective_ms = conf->collective_s * MS_PER_S;
	o->end_on_failure = conf->kill_on_failure;
	o->trace = s->launch.trace;
	o->no_kill = s->launch.no_kill;
	o->no_srun = compat_is_async(step);
	o->torch = s->torch.serves;
	memcpy(o->torch_ports, s->torch.ports, sizeof(o->torch_ports));
	o->torch_ports_wanted = torch_offer_waits(&s->torch, s->step.position);
	describe_program(o, s);
	o->prefork_ns = s->prefork_ns;
	o->launch_ns = o->trace ? process_start() : 0;
	o->connect_back_uid = step->uid;
	o->settings = s->settings;
	o->spool_dir = slurm_conf.slurmd_spooldir;
	o->spool_max = SOCKET_DIRECTORY_MAX;
	o->debug = get_log_level() >= SLURM_LOG_LEVEL_DEBUG;
}

/* Choose the network of the links, if it is not NodeAddr's. 0, or fail(). */
static int choose_network(struct agent_options *o, struct stepd *s,
			  const struct conf *conf, const char *node)
{
	struct network network;
	int rc;

	if (!conf->network[0] || s->nodes.nnodes < 2)
		return 0;
	rc = network_parse(conf->network, &network) ?
		network_address(&network, &o->bind) : -EINVAL;
	if (rc)
		fail(s, "node %s has no address in %s (%s): fix Pmi2xNetwork in mpi.conf, or the interface there",
		     node, conf->network, strerror(-rc));
	o->addresses_told = !rc;
	return rc;
}

static int open_program(struct stepd *s)
{
	s->program = supervisor_program_open(AGENT_PROGRAM);
	if (s->program >= 0)
		return 0;
	if (s->program == -EPERM)
		fail(s, "other users than root can write to %s: chown root, chmod go-w",
		     AGENT_PROGRAM);
	else
		fail(s, "%s: %s: install pmi2x there with the plugin",
		     AGENT_PROGRAM, strerror(-s->program));
	return s->program;
}

/* A build without hwloc does not have this program. */
static bool open_topology_program(struct stepd *s)
{
	s->topology_program = supervisor_program_open(TOPOLOGY_PROGRAM);
	if (s->topology_program == -EPERM)
		log_error(&slurm_log,
			  "%s is not used, because other users than root can write to it: chown root, chmod go-w",
			  TOPOLOGY_PROGRAM);
	else if (s->topology_program < 0)
		log_debug(&slurm_log, "%s: %s: each rank reads the topology itself",
			  TOPOLOGY_PROGRAM, strerror(-s->topology_program));
	return s->topology_program >= 0;
}

/* A topology that the environment chooses for hwloc is not replaced. */
static void describe_topology(struct supervisor_options *o, struct stepd *s,
			      const struct conf *conf,
			      const stepd_step_rec_t *step, char **env)
{
	static const enum supervisor_topology when[] = {
		[CONF_TOPOLOGY_OFF] = TOPOLOGY_START_NEVER,
		[CONF_TOPOLOGY_ASKED] = TOPOLOGY_START_ASKED,
		[CONF_TOPOLOGY_AGENT] = TOPOLOGY_START_AGENT,
		[CONF_TOPOLOGY_VARIABLES] = TOPOLOGY_START_RANKS,
	};

	topology_env_remove(env);
	if (!when[conf->topology] || topology_env_is_chosen(env) ||
	    !open_topology_program(s))
		return;
	s->topology = topology_file_path(step->node_name, s->nodes.node_id,
					 s->jobid);
	if (!s->topology)
		return;
	o->topology = when[conf->topology];
	o->topology_program = s->topology_program;
	o->topology_path = s->topology;
}

/* Messages of now do not reach the user: rank 0 says them later. */
static void keep_note(void *arg, enum log_level level, const char *text)
{
	char *notes = arg;
	size_t used = strlen(notes);

	snprintf(notes + used, LOG_LINE_MAX - used, "%s%s", used ? "; " : "",
		 text);
}

/* Programs below a terminal start others, which would find it. */
static int offer_pmix(struct stepd *s, struct conf *conf,
		      const stepd_step_rec_t *step, char **env)
{
	const struct log_hook notes = { keep_note, s->notes };

	if (conf->pmix != CONF_PMIX_NO && s->launch.program == LAUNCH_PROGRAM_PMIX)
		pmix_offer_note_hindrance(step->flags & LAUNCH_PTY, env, &notes);
	if (step->flags & LAUNCH_PTY)
		conf->pmix = CONF_PMIX_NO;
	s->pmix_step = (struct pmix_step){
		.jobid = s->jobid,
		.node = step->node_name,
		.node_id = s->nodes.node_id,
		.shares_machine = node_shares_machine(
			s->nodes.names, s->nodes.nnodes, s->nodes.node_id),
		.program = (enum launch_program)s->launch.program,
	};
	pmix_offer_make(&s->pmix, conf, &s->pmix_step);
	if (!s->pmix.failure)
		return 0;
	fail(s, "%s", s->pmix.failure);
	return -ENOENT;
}

static int offer_torch(struct stepd *s, const struct conf *conf, char **env)
{
	const struct log_hook notes = { keep_note, s->notes };
	char why[LOG_LINE_MAX];
	struct torch_step step = {
		.jobid = s->jobid,
		.layout = s->nodes.layout,
		.position = s->step.position,
		.first_node = s->nodes.names[layout_node_id(s->nodes.layout, 0)],
		.port_seed = s->launch.port_seed,
	};
	int rc;

	conf_ports(conf, &step.port_first, &step.port_last);
	rc = torch_offer_make(&s->torch, (enum conf_torch)conf->torch, &step, env, &notes,
			      why, sizeof(why));
	if (rc)
		fail(s, "%s", why);
	return rc;
}

static int offer_lend(struct stepd *s, const struct conf *conf, char **env)
{
	const struct log_hook notes = { keep_note, s->notes };
	char why[LOG_LINE_MAX];
	uint32_t ranks;
	int rc;

	layout_ranks_at(s->nodes.layout, s->step.position, &ranks);
	rc = lend_offer_make(&s->lend, conf->lend, env, ranks, &notes, why, sizeof(why));
	if (rc)
		fail(s, "node %s: %s", s->nodes.names[s->nodes.node_id], why);
	return rc;
}

/* On this node; srun_port_range may have them, too. */
static void leave_ports_to_slurm(struct supervisor_options *o)
{
	uint16_t count = slurm_conf.slurmctld_port_count;

	o->slurm_ports[0].first = o->slurm_ports[0].last = slurm_conf.slurmd_port;
	o->slurm_ports[1].first = slurm_conf.slurmctld_port;
	o->slurm_ports[1].last = slurm_conf.slurmctld_port + (count ? count - 1 : 0);
}

static void prepare_agent(struct stepd *s, const struct conf *conf,
			  const stepd_step_rec_t *step, char **env)
{
	struct supervisor_host host = {
		.node_address = host_node_address,
		.connect_back = s->connect_back.jobid ? host_connect_back : NULL,
		.kill_step = host_kill_step,
		.job_is_over = host_job_is_over,
		.rank_exit = host_rank_exit,
		.rank_pid = host_rank_pid,
		.arg = s,
	};
	struct supervisor_options options = {
		.program = { .fd = s->program, .uid = step->uid, .gid = step->gid },
		.connect_back_fd = s->connect_back.fd,
		.sync = true,
		.torch_port = torch_offer_served_port(&s->torch, s->step.position),
		.torch_loopback = torch_offer_is_local(&s->torch),
		.rank_fd = RANK_FD,
	};
	int rc;

	describe_agent(&options.agent, s, conf, step);
	leave_ports_to_slurm(&options);
	if (choose_network(&options.agent, s, conf, step->node_name)) {
		secret_forget(&options.agent.secret);
		return;
	}
	describe_topology(&options, s, conf, step, env);
	pmix_offer_describe(&s->pmix, &options.pmix);
	options.agent.no_pmix = s->pmix.lacks;
	rc = supervisor_prepare(&s->supervisor, &s->step, &options, &host, &slurm_log);
	s->connect_back.fd = -1; /* the supervisor's, also when it has failed */
	secret_forget(&options.agent.secret);
	secret_forget(&s->launch.secret); /* the supervisor has it */
	if (rc)
		s->supervisor = NULL;
	if (rc == -EADDRINUSE)
		fail(s, "node %s has no free port from %u to %u: widen Pmi2xPorts in mpi.conf",
		     step->node_name, options.agent.port_first,
		     options.agent.port_last);
	else if (rc)
		fail(s, "the agent of node %s cannot be prepared (%s): see slurmd's log there",
		     step->node_name, strerror(-rc));
}

/* All steps from Slurm's record to the agent; failures are kept. */
static void set_up(struct stepd *s, const stepd_step_rec_t *step, char ***env,
		   const struct conf *conf)
{
	const struct log_hook notes = { keep_note, s->notes };
	struct conf own = *conf;

	if (name_step(s, step) || read_launch(s, step, env) ||
	    read_layout(s, step) || read_apps(s, step) || open_program(s))
		return;
	read_async(s, step, *env);
	conf_override(&own, *env, &notes);
	if (s->launch.kill != LAUNCH_KILL_UNSAID)
		own.kill_on_failure = s->launch.kill == LAUNCH_KILL_YES;
	else if (s->launch.no_kill) /* the step goes on without lost nodes */
		own.kill_on_failure = 0;
	conf_agreed(&own, s->settings);
	describe_step(s, &own, step, *env);
	if (s->nodes.nnodes > 1)
		connect_back_socket_open(&s->connect_back, step->node_name,
					 s->nodes.node_id, s->jobid,
					 s->launch.run, step->uid);
	if (offer_pmix(s, &own, step, *env) || offer_torch(s, &own, *env) ||
	    offer_lend(s, &own, *env))
		return;
	prepare_agent(s, &own, step, *env);
	foreign_env_remove(*env);
	if (s->supervisor)
		pmix_offer_set_env(&s->pmix, s->supervisor, &s->pmix_step,
				   s->step.position, env);
}

struct stepd *stepd_start(const stepd_step_rec_t *step, char ***env,
			  const struct conf *conf)
{
	struct stepd *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->pid = getpid();
	s->record = step;
	s->connect_back.fd = s->program = s->topology_program = -1;
	s->prefork_ns = clock_ns(CLOCK_MONOTONIC);
	set_up(s, step, env, conf);
	return s;
}

/* The agent is slurmstepd's alone. Asked for the pid once, not at each fork. */
void stepd_forked(struct stepd *s)
{
	if (!s->supervisor || s->running || s->pid != getpid())
		return;
	s->running = true;
	supervisor_run(s->supervisor); /* if not, ranks fail to register, and say so */
}

void stepd_stop(struct stepd *s)
{
	int rc = 0;

	if (!s)
		return;
	topology_file_remove_stale(s->topology);
	if (s->supervisor)
		rc = supervisor_stop(s->supervisor);
	if (s->failure && s->nodes.nnodes > 1) /* the others would wait for us */
		host_kill_step(s, s->failure);
	if (rc) { /* a thread may read the rest until the process ends */
		connect_back_socket_unlink(&s->connect_back);
		return;
	}
	connect_back_socket_close(&s->connect_back);
	free(s->reserved_ports);
	if (s->program >= 0)
		close(s->program);
	if (s->topology_program >= 0)
		close(s->topology_program);
	free(s->topology);
	pmix_offer_free(&s->pmix);
	torch_offer_free(&s->torch);
	lend_offer_free(&s->lend);
	step_layout_free(&s->nodes);
	step_apps_free(&s->apps);
	launch_env_free(&s->launch);
	free(s->jobid);
	free(s->failure);
	free(s);
}
