/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node of the step: what slurmstepd does with the supervisor of an agent, from its
 * beginning to its end, and what the supervisor asks of it; and the agent's process. All
 * that depends on how an agent is hosted is here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/program.h"
#include "testsuite/dst/files.h"
#include "testsuite/dst/sockets.h"
#include "testsuite/dst/step.h"

#define LAUNCH_NS (2 * MS)
#define PORTS_FIRST 20000

/* ---- what the agent asks for ---- */

static void address_of(const struct step *s, uint32_t node,
		       struct sockaddr_storage *out)
{
	host_address(out, s->nodes[node].process->host, 0);
}

static int node_address(void *arg, uint32_t node, bool may_block,
			struct sockaddr_storage *out)
{
	struct sim_node *n = arg;
	struct step *s = n->step;

	if (s->plan->fault == FAULT_LOOKUP && !may_block)
		return -EAGAIN;
	if (may_block)
		task_sleep(draw_below(900 * MS));
	if (may_block && s->failing_lookups) {
		s->failing_lookups--;
		return -EHOSTUNREACH;
	}
	address_of(s, node, out);
	return 0;
}

static ssize_t write_all(int fd, const void *data, size_t len)
{
	ssize_t n;

	do {
		n = write(fd, data, len); /* there is room for all of it */
	} while (n < 0 && errno == EINTR);
	return n;
}

/* Delivers a message to a socket of a step, as slurmd does. */
static int deliver(int listener, const void *data, size_t len)
{
	const uint32_t header[2] = { 0, htonl(len) };
	int rc = 0, fd = local_connect(listener);

	if (fd < 0)
		return -errno;
	if (write_all(fd, header, sizeof(header)) < 0 ||
	    write_all(fd, data, len) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int connect_back(void *arg, uint32_t node, const void *data, size_t len)
{
	const struct sim_node *n = arg, *to = &n->step->nodes[node];
	int rc;

	task_sleep(draw_between(MS, 500 * MS));
	if (to->connect_back_fd < 0)
		return -ENOENT;
	rc = deliver(to->connect_back_fd, data, len);
	trace("tells node", node, rc);
	if (draw_once_in(3))
		(void)deliver(to->connect_back_fd, data, len);
	return rc;
}

static void kill_step(void *arg, const char *why)
{
	struct sim_node *n = arg;

	task_sleep(draw_below(100 * MS));
	step_abort(n->step, why);
}

static const struct sim_rank *rank_in(const struct sim_node *n, uint32_t slot)
{
	const struct step *s = n->step;

	for (uint32_t r = 0; r < s->plan->ranks; r++)
		if (s->ranks[r].node == n && s->ranks[r].slot == slot)
			return &s->ranks[r];
	return NULL;
}

static bool rank_exit(void *arg, uint32_t slot, struct pmi_exit *end)
{
	const struct process *p = rank_in(arg, slot)->process;

	if (!p || !p->dead || draw_once_in(3))
		return false;
	end->status = p->status;
	end->by_launcher = ((struct sim_node *)arg)->step->ending;
	return true;
}

/* ---- life ---- */

static struct agent_options make_options(const struct step *s, uint32_t host)
{
	const struct plan *p = s->plan;
	struct agent_options o;

	agent_options_init(&o);
	o.secret = s->secret;
	o.port_first = PORTS_FIRST;
	o.port_last = PORTS_FIRST + p->ports - 1;
	o.addresses_told = p->addresses_told;
	if (p->addresses_told)
		host_address(&o.bind, host, 0);
	o.region_size = p->region_size;
	o.connect_ms = p->connect_ms;
	o.end_on_failure = p->end_on_failure;
	o.no_kill = p->no_kill;
	o.trace = p->trace;
	o.stall_ms = 10000;
	o.stays = true;
	o.drain_ms = 30000; /* the network may be slow; who leaves late does no harm */
	if (p->srun)
		host_address(&o.launcher, SRUN_HOST, s->srun_port);
	return o;
}

static void *agent_main(void *arg)
{
	struct sim_node *n = arg;
	int rc = agent_program(n->setup_fd, n->host_fd, &n->fds, NULL, NULL);

	check_nothing_left(n->agent);
	process_kill(n->agent, rc << 8);
	return NULL;
}

static bool is_dead(void *arg)
{
	return ((struct process *)arg)->dead;
}

static struct process *new_process(const struct sim_node *n, const char *what)
{
	char name[24];

	snprintf(name, sizeof(name), "%s%u", what, n->id);
	return process_new(name, n->step->plan->one_host ? 1 : n->id + 1);
}

/* In the thread that stands for the agent: a process with these descriptors. */
static int run_agent(int setup_fd, int host_fd, const struct agent_fds *fds)
{
	struct sim_node *n = process_current()->arg;
	const int all[] = { setup_fd, host_fd, fds->registration,
			    fds->listener, fds->connect_back, fds->region,
			    fds->pmix, fds->sync, fds->sync_client };

	n->setup_fd = setup_fd;
	n->host_fd = host_fd;
	n->fds = *fds;
	n->agent = new_process(n, "agent");
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		fd_give(all[i], n->agent);
	task_start(n->agent, agent_main, n);
	task_wait(is_dead, n->agent, NEVER);
	return 0;
}

static int open_supervisor(struct sim_node *n, struct supervisor **out)
{
	const struct supervisor_host host = {
		.node_address = node_address,
		.connect_back = connect_back,
		.kill_step = kill_step,
		.rank_exit = rank_exit,
		.arg = n,
	};
	const struct supervisor_options options = {
		.agent = make_options(n->step, n->process->host),
		.program.run = run_agent,
		.program.uid = getuid(),
		.sync = true,
		.connect_back_fd = n->connect_back_fd = local_listen(),
	};
	int rc = supervisor_start(out, &n->view, &options, &host, step_log());

	if (rc)
		return rc;
	n->registration_fd = supervisor_registration_fd(*out);
	if (supervisor_sync_name(*out))
		snprintf(n->sync_name, sizeof(n->sync_name), "%s", supervisor_sync_name(*out));
	return 0;
}

static void close_supervisor(struct supervisor *s)
{
	int rc = supervisor_stop(s);

	if (rc)
		failed("supervisor_stop: %s", strerror(-rc));
}

static bool ranks_have_ended(void *arg)
{
	struct sim_node *n = arg;
	struct step *s = n->step;

	for (uint32_t r = 0; r < s->plan->ranks; r++)
		if (s->ranks[r].node == n && s->ranks[r].process &&
		    !s->ranks[r].process->dead)
			return false;
	return true;
}

static void launch(struct sim_node *n)
{
	struct step *s = n->step;

	for (uint32_t r = 0; r < s->plan->ranks; r++) {
		if (s->ranks[r].node != n)
			continue;
		task_sleep(draw_below(LAUNCH_NS));
		if (!s->ending)
			rank_begin(&s->ranks[r]);
	}
}

/* Ranks may have ended of themselves, but not the whole of that time. */
static void check_step_is_ended(const struct sim_node *n)
{
	if (n->agent_killed != NEVER && now() > n->agent_killed + SEC &&
	    !n->step->ending)
		failed("the agent was killed, and the step has not been ended");
}

static void *node_main(void *arg)
{
	struct sim_node *n = arg;
	struct supervisor *s;
	int rc;

	task_sleep(draw_below(n->step->plan->late_ns));
	rc = open_supervisor(n, &s);
	if (rc) {
		if (plan_succeeds(n->step->plan))
			failed("supervisor_start: %s", strerror(-rc));
		step_abort(n->step, "an agent's supervisor cannot be started");
	} else {
		launch(n);
		task_wait(ranks_have_ended, n, NEVER);
		check_step_is_ended(n);
		close_supervisor(s);
	}
	check_nothing_left(n->process);
	process_kill(n->process, 0);
	return NULL;
}

void node_begin(struct sim_node *n)
{
	n->process = new_process(n, "node");
	n->process->arg = n;
	task_start(n->process, node_main, n);
}
