/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of the agent, and its end. The agent belongs to the step's user: what it
 * sends is checked, and how often it asks is limited. Calls that block have threads of
 * their own, which answer by themselves.
 */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libconfine/host_msg.h"
#include "libio/holder.h"

#define CALLS_AT_ONCE 256
#define CALLS_A_SECOND 64
#define LINES_AT_ONCE 512
#define LINES_A_SECOND 32
#define QUESTIONS_AT_ONCE 1024 /* about sockets */
#define QUESTIONS_A_SECOND 64
#define MESSAGES_A_TURN 64
#define ASK_MS_MAX 32      /* between two looks how a process has ended */
#define ASK_SOON_MS 5000   /* after it was asked for; then it is looked at */
#define ASK_LATER_MS 1000  /* now and then: the process lives on */

/* ---- limits ---- */

static struct allowance allowance(uint32_t most, uint32_t a_second)
{
	return (struct allowance){ most, a_second, most, supervisor_now() };
}

static bool take(struct allowance *a)
{
	uint64_t now = supervisor_now();
	uint64_t more = (now - a->since) * a->a_second / 1000;

	if (more) {
		a->since = now;
		a->left = more < a->most - a->left ? a->left + (uint32_t)more :
						     a->most;
	}
	if (!a->left)
		return false;
	a->left--;
	return true;
}

/* ---- calls that block ---- */

struct call {
	struct supervisor_host host;
	int fd;          /* to answer over */
	uint32_t node_id;
	uint32_t uid;    /* the step's */
	size_t len;
	char data[HOST_DATA_MAX];
};

static void find(void *arg)
{
	struct call *c = arg;
	struct sockaddr_storage addr = { 0 };
	struct host_msg m = {
		.type = HOST_FOUND,
		.number = c->node_id,
		.code = c->host.node_address(c->host.arg, c->node_id, true,
					     &addr),
		.data = &addr,
		.len = sizeof(addr),
	};

	(void)host_msg_send_wait(c->fd, &m);
}

static void tell(void *arg)
{
	struct call *c = arg;
	struct host_msg m = {
		.type = HOST_CONNECT_BACK_SENT,
		.number = c->node_id,
		.code = c->host.connect_back(c->host.arg, c->node_id, c->data,
					  c->len),
	};

	(void)host_msg_send_wait(c->fd, &m);
}

/* The user's processes may not be open to this thread's user. */
static void find_holder(void *arg)
{
	const struct call *c = arg;
	struct host_msg m = { .type = HOST_HOLDER };
	struct holder_question q;

	child_become_root();
	holder_unpack((const unsigned char *)c->data, c->uid, &q);
	m.code = holder_find(&q);
	(void)host_msg_send_wait(c->fd, &m);
}

/* An answer that the agent has no room for is kept. That it has died is heard. */
void service_send(struct supervisor *s, const struct host_msg *m)
{
	int rc = host_out_send(&s->service.out, s->service.agent.fd, m);

	if ((rc != -ENOBUFS && rc != -ENOMEM) || s->service.deaf)
		return;
	s->service.deaf = true;
	log_error(s->log, "killed the agent of node %s: the agent does not read its answers, of which %u wait (%s)",
		  supervisor_node_name(s), s->service.out.count, strerror(-rc));
	child_kill(&s->service.agent);
}

/* 0 or a negative errno: the call is not made. */
static int call_in_helper(struct supervisor *s, struct helpers *helpers,
		      void (*fn)(void *arg), const struct host_msg *m)
{
	struct call *c;
	int rc;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->host = s->host;
	c->fd = s->service.agent.fd;
	c->node_id = m->number;
	c->uid = s->options.program.uid;
	c->len = m->len;
	memcpy(c->data, m->data, m->len);
	rc = helpers_run(helpers, fn, free, c);
	if (rc)
		free(c);
	return rc;
}

/* Starts a call about a node. */
static int start_call(struct supervisor *s, struct helpers *helpers,
		      void (*fn)(void *arg), const struct host_msg *m)
{
	if (m->number >= layout_nodes(s->step->layout))
		return -EINVAL;
	if (!take(&s->service.calls))
		return -EAGAIN;
	return call_in_helper(s, helpers, fn, m);
}

static void refuse(struct supervisor *s, enum host_type type, uint32_t number,
		   int rc)
{
	const struct host_msg m = { .type = type, .number = number, .code = rc };

	service_send(s, &m);
}

static void on_find(struct supervisor *s, const struct host_msg *m)
{
	int rc = start_call(s, s->service.lookups, find, m);

	if (rc)
		refuse(s, HOST_FOUND, m->number, rc);
}

static void on_tell(struct supervisor *s, const struct host_msg *m)
{
	int rc = s->host.connect_back ?
		start_call(s, s->service.helpers, tell, m) : -EOPNOTSUPP;

	if (rc)
		refuse(s, HOST_CONNECT_BACK_SENT, m->number, rc);
}

static void on_find_holder(struct supervisor *s, const struct host_msg *m)
{
	int rc = -EAGAIN;

	if (m->len != HOLDER_BYTES)
		rc = -EINVAL;
	else if (take(&s->service.questions))
		rc = call_in_helper(s, s->service.helpers, find_holder, m);
	if (rc)
		refuse(s, HOST_HOLDER, 0, rc);
}

/* ---- the rest of what it asks ---- */

void service_log(struct supervisor *s, const struct host_msg *m)
{
	char line[LOG_LINE_MAX];

	if (!take(&s->service.lines)) {
		s->service.lines_lost++;
		return;
	}
	if (s->service.lines_lost)
		log_error(s->log, "%u log lines of the agent and its helpers are left out: the limit of lines was reached",
			  s->service.lines_lost);
	s->service.lines_lost = 0;
	child_text(line, sizeof(line), m);
	log_line(s->log, m->number > LOG_LEVEL_DEBUG ? LOG_LEVEL_DEBUG :
		 (enum log_level)m->number, "%s", line);
}

static void kill_in_helper(void *arg)
{
	struct call *c = arg;

	c->host.kill_step(c->host.arg, c->data);
}

void service_kill(struct supervisor *s, const char *why)
{
	struct call *c;

	if (s->service.killed || !s->host.kill_step)
		return;
	s->service.killed = true;
	refuse_waiting_ranks(s);
	c = calloc(1, sizeof(*c));
	if (!c) {
		s->host.kill_step(s->host.arg, why);
		return;
	}
	c->host = s->host;
	snprintf(c->data, sizeof(c->data), "%s", why);
	if (!helpers_run(s->service.helpers, kill_in_helper, free, c))
		return;
	kill_in_helper(c);
	free(c);
}

static void on_kill(struct supervisor *s, const struct host_msg *m)
{
	char why[SUPERVISOR_WHY_MAX];

	child_text(why, sizeof(why), m);
	service_kill(s, why);
}

static void on_how_ended(struct supervisor *s, const struct host_msg *m)
{
	struct service *v = &s->service;

	if (m->number >= v->nasked || !s->host.rank_exit)
		return;
	v->asked[m->number] = supervisor_now() + ASK_SOON_MS;
	v->ask_ms = 0;
}

/* Answers for ranks that have ended. In how many ms to look at others; -1: never. */
static int answer_ends(struct supervisor *s)
{
	struct service *v = &s->service;
	uint64_t now = supervisor_now();
	bool any = false, soon = false;

	for (uint32_t i = 0; i < v->nasked; i++) {
		struct pmi_exit end;
		struct host_msg m = { .type = HOST_ENDED, .number = i };
		char by_launcher;

		if (!v->asked[i])
			continue;
		if (s->host.rank_exit(s->host.arg, i, &end)) {
			by_launcher = end.by_launcher;
			m.code = end.status;
			m.data = &by_launcher;
			m.len = 1;
			service_send(s, &m);
			v->asked[i] = 0;
		}
		any |= v->asked[i] != 0;
		soon |= now < v->asked[i];
	}
	if (!any)
		return -1;
	v->ask_ms = v->ask_ms ? v->ask_ms * 2 : 1;
	if (v->ask_ms > ASK_MS_MAX)
		v->ask_ms = ASK_MS_MAX;
	return soon ? v->ask_ms : ASK_LATER_MS;
}

/* ---- who it is, and its end ---- */

bool service_fits(struct supervisor *s, const char *name, const struct host_msg *m)
{
	char build[128], why[SUPERVISOR_WHY_MAX];

	if (m->number == HOST_VERSION)
		return true;
	child_text(build, sizeof(build), m);
	snprintf(why, sizeof(why),
		 "node %.64s: %s (build %s) has version %u of the protocol, the plugin (build %.128s) version %u: install both from the same release",
		 supervisor_node_name(s), name, build, m->number, s->step->build,
		 HOST_VERSION);
	log_error(s->log, "%s", why);
	supervisor_kill(s, why);
	return false;
}

static void on_ready(struct supervisor *s, const struct host_msg *m)
{
	s->service.ready = true;
	(void)service_fits(s, "pmi2x-agent", m);
}

static void grant_time(struct supervisor *s)
{
	s->service.limit = supervisor_now() + s->options.agent.drain_ms +
			   SUPERVISOR_MARGIN_MS;
}

static void tell_to_leave(struct supervisor *s)
{
	const struct host_msg m = { .type = HOST_LEAVE };

	s->service.leaving = true;
	grant_time(s);
	service_send(s, &m);
}

static void on_stays(struct supervisor *s)
{
	if (!s->service.leaving)
		return;
	grant_time(s);
	(void)eventfd_write(s->news, 1);
}

static void on_wake(struct supervisor *s)
{
	eventfd_t times;

	(void)eventfd_read(s->wake, &times);
	if (s->service.leaving)
		s->service.job_is_over = true;
	else
		tell_to_leave(s);
}

/*
 * The agent has crashed by a signal that tells of a bug; SIGSYS: the filter has caught
 * it.
 */
static void on_crashed(struct supervisor *s, const struct host_msg *m)
{
	char why[SUPERVISOR_WHY_MAX], call[32] = "";

	if (m->number == SIGSYS)
		snprintf(call, sizeof(call), " in system call %d", m->code);
	snprintf(why, sizeof(why),
		 "the agent of node %.64s crashed: signal %u%s; please report it",
		 supervisor_node_name(s), m->number, call);
	log_error(s->log, "%s", why);
	supervisor_kill(s, why);
}

bool service_step_ends_here(const struct supervisor *s)
{
	struct pmi_exit end = { .by_launcher = false };

	for (uint32_t i = 0; i < s->service.nasked; i++)
		if (!s->host.rank_exit ||
		    (!s->host.rank_exit(s->host.arg, i, &end) &&
		     !end.by_launcher))
			return false;
	return true;
}

/*
 * Without a word. Until it has left slurmstepd's cgroup, which it does before it says
 * that it is ready, it is killed with the step.
 */
static void agent_died(struct supervisor *s)
{
	char why[SUPERVISOR_WHY_MAX];

	if (!s->service.ready && service_step_ends_here(s)) {
		refuse_waiting_ranks(s);
		return;
	}
	snprintf(why, sizeof(why),
		 "the agent of node %.64s has died: it was killed (by the user, or for lack of memory: see the kernel's log there)",
		 supervisor_node_name(s));
	if (s->service.killed)
		return;
	log_error(s->log, "%s", why);
	supervisor_kill(s, why);
}

/* ---- messages ---- */

static void take_message(struct supervisor *s, const struct host_msg *m)
{
	switch (m->type) {
	case HOST_READY: on_ready(s, m); break;
	case HOST_FIND: on_find(s, m); break;
	case HOST_CONNECT_BACK: on_tell(s, m); break;
	case HOST_FIND_HOLDER: on_find_holder(s, m); break;
	case HOST_KILL: on_kill(s, m); break;
	case HOST_HOW_ENDED: on_how_ended(s, m); break;
	case HOST_LOG: service_log(s, m); break;
	case HOST_CRASHED: on_crashed(s, m); break;
	case HOST_WANT_TOPOLOGY: topology_asked(s); break;
	case HOST_STAYS: on_stays(s); break;
	case HOST_TORCH_PORTS: torch_ports_known(s, m); break;
	case HOST_END: s->service.over = true; break;
	default: break; /* messages that only the supervisor sends */
	}
}

/* 1: a message; 0: none yet; negative: the connection's end. */
static int read_message(struct supervisor *s)
{
	char room[HOST_MSG_MAX];
	struct host_msg m;
	int rc = child_receive(&s->service.agent, room, &m);

	if (rc == 1)
		take_message(s, &m);
	if (rc != -EPROTO)
		return rc;
	log_error(s->log, "killed the agent of node %s: the agent sent an invalid message",
		  supervisor_node_name(s));
	child_kill(&s->service.agent);
	return rc;
}

/* 1: there may be more; else as read_message. */
static int read_messages(struct supervisor *s)
{
	int rc = 1;

	for (int i = 0; i < MESSAGES_A_TURN && rc > 0; i++)
		rc = read_message(s);
	return rc;
}

/* Until when to sleep. */
static int longest_sleep(struct supervisor *s)
{
	struct service *v = &s->service;
	uint64_t now = supervisor_now();
	int ms = answer_ends(s);

	if (v->leaving && (ms < 0 || v->limit - now < (uint64_t)ms))
		ms = v->limit > now ? (int)(v->limit - now) : 0;
	if (topology_left_ms(s) >= 0 && (ms < 0 || topology_left_ms(s) < ms))
		ms = topology_left_ms(s);
	return ms;
}

static bool is_late(struct supervisor *s)
{
	const struct service *v = &s->service;

	if (!v->leaving || (!v->job_is_over && supervisor_now() < v->limit))
		return false;
	log_error(s->log, "killed the agent of node %s: the agent did not end in time%s",
		  supervisor_node_name(s),
		  v->job_is_over ? ": the job is over" : "");
	child_kill(&v->agent);
	return true;
}

/*
 * A process that slurmstepd has forked and that has yet to become a rank keeps
 * connections open: the end of a program shows in its process, not in its connection.
 */
enum service_poll {
	SERVICE_AGENT,
	SERVICE_AGENT_END,
	SERVICE_WAKE,
	SERVICE_TOPOLOGY,
	SERVICE_PMIX,
	SERVICE_PMIX_END,
	SERVICE_PMIX_DUE,
	SERVICE_POLLS = SERVICE_PMIX_DUE + PMIX_POLLS,
};

static void set_fds(const struct supervisor *s, struct pollfd *fds)
{
	const struct service *v = &s->service;
	const struct pmix *x = &s->pmix;

	for (int i = 0; i < SERVICE_POLLS; i++)
		fds[i] = (struct pollfd){ .events = POLLIN };
	fds[SERVICE_AGENT].fd = v->agent.fd;
	fds[SERVICE_AGENT].events |= v->out.count ? POLLOUT : 0;
	fds[SERVICE_AGENT_END].fd = v->agent.pidfd;
	fds[SERVICE_WAKE].fd = s->wake;
	fds[SERVICE_TOPOLOGY].fd = s->topology.child.fd;
	fds[SERVICE_PMIX].fd = x->process.child.fd;
	fds[SERVICE_PMIX_END].fd = x->process.child.fd < 0 ? -1 : x->process.child.pidfd;
	pmix_set_fds(s, &fds[SERVICE_PMIX_DUE]);
}

/* True: the agent has ended, and all of its messages were read. */
static bool agent_has_ended(struct supervisor *s, const struct pollfd *fds)
{
	int rc = fds[SERVICE_AGENT].revents || fds[SERVICE_AGENT_END].revents ?
			 read_messages(s) : 1;

	return rc < 0 || (!rc && fds[SERVICE_AGENT_END].revents);
}

/* True: the agent has ended; what ends because of that is not looked at. */
static bool take_events(struct supervisor *s, const struct pollfd *fds)
{
	if (agent_has_ended(s, fds))
		return true;
	(void)host_out_flush(&s->service.out, s->service.agent.fd);
	if (fds[SERVICE_WAKE].revents)
		on_wake(s);
	if (fds[SERVICE_TOPOLOGY].revents)
		topology_event(s);
	if (fds[SERVICE_PMIX].revents || fds[SERVICE_PMIX_END].revents)
		pmix_event(s, fds[SERVICE_PMIX_END].revents);
	if (pmix_is_due(s, &fds[SERVICE_PMIX_DUE]))
		pmix_begin(s);
	return false;
}

void service_run(struct supervisor *s)
{
	struct service *v = &s->service;
	struct pollfd fds[SERVICE_POLLS];
	bool ended = false;

	while (!ended) {
		set_fds(s, fds);
		if (poll(fds, SERVICE_POLLS, longest_sleep(s)) > 0)
			ended = take_events(s, fds);
		topology_check(s);
		ended |= is_late(s);
	}
	if (!v->over && !v->leaving)
		agent_died(s);
}

/* ---- life ---- */

int service_open(struct supervisor *s)
{
	struct service *v = &s->service;
	int rc;

	v->calls = allowance(CALLS_AT_ONCE, CALLS_A_SECOND);
	v->questions = allowance(QUESTIONS_AT_ONCE, QUESTIONS_A_SECOND);
	v->lines = allowance(LINES_AT_ONCE, LINES_A_SECOND);
	v->nasked = s->dormant.count;
	v->asked = calloc(v->nasked, sizeof(*v->asked));
	if (!v->asked)
		return -ENOMEM;
	rc = helpers_create(&v->helpers);
	return rc ? rc : helpers_create(&v->lookups);
}

/* A resolver that does not answer is left to itself. */
int service_close(struct supervisor *s)
{
	struct service *v = &s->service;
	int rc, late;

	if (v->agent.fd >= 0) /* calls that wait for room have nobody to answer */
		(void)shutdown(v->agent.fd, SHUT_RDWR);
	rc = helpers_destroy(v->helpers, s->options.agent.drain_ms);
	late = helpers_destroy(v->lookups, SUPERVISOR_LINGER_MS);
	free(v->asked);
	host_out_free(&v->out);
	leaf_remove(&s->leaf, LEAF_REMOVE_MS);
	leaf_free(&s->leaf);
	child_forget(&v->agent);
	/* A call that is left answers over it. */
	if (!rc && !late)
		child_hang_up(&v->agent);
	return rc ? rc : late;
}
