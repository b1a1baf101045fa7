/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the agent of a node: life cycle and thread. */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libio/clock.h"

uint64_t supervisor_now(void)
{
	return (uint64_t)clock_ns(CLOCK_MONOTONIC) / 1000000;
}

const char *supervisor_node_name(const struct supervisor *s)
{
	const struct pmi_step *step = s->step;

	return step->node_names[layout_node_id(step->layout, step->position)];
}

/* How people can raise the limit that was met; "" when it was none. */
static void hint(int error, char out[SUPERVISOR_WHY_MAX])
{
	struct rlimit limit;

	out[0] = '\0';
	if (error == -EMFILE && !getrlimit(RLIMIT_NOFILE, &limit))
		snprintf(out, SUPERVISOR_WHY_MAX,
			 " (the limit of this slurmstepd is %llu): raise LimitNOFILE in the unit of slurmd there, or ulimit -n where it is started, or start fewer ranks a node",
			 (unsigned long long)limit.rlim_cur);
	else if (error == -ENFILE)
		snprintf(out, SUPERVISOR_WHY_MAX, ": raise fs.file-max there");
}

bool supervisor_wait_event(int fd, int ms)
{
	struct pollfd event = { .fd = fd, .events = POLLIN };
	int n;

	while ((n = poll(&event, 1, ms)) < 0 && errno == EINTR)
		;
	return n > 0;
}

void supervisor_kill(struct supervisor *s, const char *why)
{
	if (s->service.killed)
		return;
	s->service.killed = true;
	refuse_waiting_ranks(s);
	if (s->host.kill_step)
		s->host.kill_step(s->host.arg, why);
}

/* A failure here comes too late to fail the launch: the step is ended, for its other nodes
   would wait for this one. */
static void fail_to_start(struct supervisor *s, int rc)
{
	char why[SUPERVISOR_WHY_MAX], how[SUPERVISOR_WHY_MAX];

	hint(rc, how);
	snprintf(why, sizeof(why),
		 "cannot start the agent of node %.64s: %s%.300s",
		 supervisor_node_name(s), strerror(-rc), how);
	log_error(s->log, "%s", why);
	dormant_refuse_ranks(s);
	supervisor_kill(s, why);
}

static void serve(struct supervisor *s)
{
	int rc;

	if (!dormant_wait(s))
		return;
	if (s->options.agent.trace)
		s->options.agent.wanted_ns = clock_ns(CLOCK_MONOTONIC);
	rc = s->dormant.error ? s->dormant.error : launch_agent(s);
	if (rc) {
		fail_to_start(s, rc);
		return;
	}
	if (s->options.topology == TOPOLOGY_START_AGENT)
		topology_begin(s);
	if (s->dormant.wants_pmix)
		pmix_begin(s);
	service_run(s);
}

static void *supervisor_main(void *arg)
{
	struct supervisor *s = arg;

	serve(s);
	atomic_store(&s->ended, true);
	(void)eventfd_write(s->news, 1);
	return NULL;
}

static void supervisor_free(struct supervisor *s)
{
	pmix_close(s);
	torch_ports_close(s);
	topology_close(s);
	dormant_close(s);
	fd_close(&s->wake);
	fd_close(&s->news);
	secret_forget(&s->options.agent.secret);
	free(s);
}

/* The agent belongs to its user: it shall not outlive the job by what it says. */
static void check_job(struct supervisor *s)
{
	if (s->host.job_is_over && s->host.job_is_over(s->host.arg))
		(void)eventfd_write(s->wake, 1);
}

/*
 * Ask the thread to end, and wait for it. While the agent stays the job is looked at,
 * more and more rarely.
 */
static int end_thread(struct supervisor *s)
{
	/* Once for the agent, and once for what is left of it. */
	const int ms = (int)s->options.agent.drain_ms + 2 * SUPERVISOR_MARGIN_MS;
	const uint64_t since = supervisor_now();
	uint64_t due = since, now;
	eventfd_t times;

	atomic_store(&s->stopping, true);
	(void)eventfd_write(s->wake, 1);
	while (supervisor_wait_event(s->news, ms) && !atomic_load(&s->ended)) {
		(void)eventfd_read(s->news, &times);
		now = supervisor_now();
		if (now < due)
			continue;
		due = now + (now - since) + s->options.agent.drain_ms;
		check_job(s);
	}
	return thread_join(s->thread, SUPERVISOR_MARGIN_MS);
}

/*
 * The host blocks the thread; freeing under its feet would be worse. Processes that it
 * has started end all the same, and its files are removed.
 */
static void abandon_thread(struct supervisor *s)
{
	log_error(s->log,
		  "the supervisor thread does not end: leaving it behind");
	thread_keep_code();
	child_become_root();
	child_kill(&s->service.agent);
	pmix_abandon(s);
	topology_abandon(s);
	(void)leaf_remove(&s->leaf, LEAF_REMOVE_MS);
}

int supervisor_stop(struct supervisor *s)
{
	int rc;

	if (s->running && end_thread(s)) {
		abandon_thread(s);
		return -EBUSY;
	}
	if (s->has_thread)
		pthread_join(s->agent, NULL);
	rc = service_close(s);
	supervisor_free(s);
	return rc;
}

/* A rank alone on its node gains nothing. */
static enum supervisor_topology topology_of(const struct supervisor *s)
{
	uint32_t count;

	layout_ranks_at(s->step->layout, s->step->position, &count);
	return count > 1 ? s->options.topology : TOPOLOGY_START_NEVER;
}

static int make_events(struct supervisor *s)
{
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s->wake < 0 || s->news < 0 ? -errno : 0;
}

int supervisor_prepare(struct supervisor **out, const struct pmi_step *step,
		    const struct supervisor_options *options,
		    const struct supervisor_host *host, const struct log_hook *log)
{
	struct supervisor *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		if (options->connect_back_fd >= 0)
			close(options->connect_back_fd);
		return -ENOMEM;
	}
	secret_hide(&s->options.agent.secret);
	s->step = step;
	s->options = *options;
	s->options.agent.exits_known = host->rank_exit != NULL;
	s->host = *host;
	s->log = log;
	s->wake = s->news = -1;
	s->service.agent = CHILD_NONE;
	s->options.topology = topology_of(s);
	s->options.agent.topology = s->options.topology != TOPOLOGY_START_NEVER;
	sync_open(s);
	rc = topology_open(s);
	rc = rc ? rc : torch_ports_open(s);
	rc = rc ? rc : pmix_open(s);
	rc = rc ? rc : dormant_open(s);
	rc = rc ? rc : service_open(s);
	rc = rc ? rc : make_events(s);
	if (!rc) {
		s->options.agent.ready_ns = clock_ns(CLOCK_MONOTONIC);
		*out = s;
		return 0;
	}
	log_error(log, "cannot prepare the agent of the node: %s",
		  strerror(-rc));
	service_close(s);
	supervisor_free(s);
	return rc;
}

int supervisor_run(struct supervisor *s)
{
	int rc = thread_start(&s->thread, supervisor_main, s);

	s->running = !rc;
	if (!rc)
		return 0;
	log_error(s->log, "cannot start the supervisor thread: %s",
		  strerror(-rc));
	dormant_refuse_ranks(s);
	return rc;
}

int supervisor_start(struct supervisor **out, const struct pmi_step *step,
		  const struct supervisor_options *options,
		  const struct supervisor_host *host, const struct log_hook *log)
{
	int rc = supervisor_prepare(out, step, options, host, log);

	if (rc)
		return rc;
	rc = supervisor_run(*out);
	if (rc)
		supervisor_stop(*out);
	return rc;
}

int supervisor_registration_fd(const struct supervisor *s)
{
	return s->dormant.theirs;
}
