/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the agent asks, and its end. It belongs to the step's user: what it sends is
 * checked, and how often it asks is limited. Calls that block have threads of their
 * own, which answer by themselves.
 */
#include "starter/starter_internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host_msg.h"

#define CALLS_AT_ONCE 256
#define CALLS_A_SECOND 64
#define LINES_AT_ONCE 512
#define LINES_A_SECOND 32
#define MESSAGES_A_TURN 64
#define ASK_MS_MAX 32      /* between two looks how a process has ended */
#define ASK_FOR_MS 5000    /* so long after it was asked for */

/* ---- limits ---- */

static struct allowance allowance(uint32_t most, uint32_t a_second)
{
	return (struct allowance){ most, a_second, most, starter_now() };
}

static bool take(struct allowance *a)
{
	uint64_t now = starter_now();
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
	struct starter_host host;
	int fd;          /* to answer over */
	uint32_t node_id;
	bool answer;
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

	(void)host_msg_send(c->fd, &m);
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

	if (c->answer)
		(void)host_msg_send(c->fd, &m);
}

/* 0 or a negative errno: the call is not made. */
static int start_call(struct starter *s, struct helpers *helpers,
		      void (*fn)(void *arg), const struct host_msg *m)
{
	struct call *c;
	int rc;

	if (m->number >= layout_nodes(s->step->layout))
		return -EINVAL;
	if (!take(&s->service.calls))
		return -EAGAIN;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->host = s->host;
	c->fd = s->service.fd;
	c->node_id = m->number;
	c->answer = m->code != 0;
	c->len = m->len;
	memcpy(c->data, m->data, m->len);
	rc = helpers_run(helpers, fn, free, c);
	if (rc)
		free(c);
	return rc;
}

static void refuse(struct starter *s, enum host_type type, uint32_t number,
		   int rc)
{
	const struct host_msg m = { .type = type, .number = number, .code = rc };

	(void)host_msg_send(s->service.fd, &m);
}

static void on_find(struct starter *s, const struct host_msg *m)
{
	int rc = start_call(s, s->service.lookups, find, m);

	if (rc)
		refuse(s, HOST_FOUND, m->number, rc);
}

static void on_tell(struct starter *s, const struct host_msg *m)
{
	int rc = s->host.connect_back ?
		start_call(s, s->service.helpers, tell, m) : -EOPNOTSUPP;

	if (rc && m->code)
		refuse(s, HOST_CONNECT_BACK_SENT, m->number, rc);
}

/* ---- the rest of what it asks ---- */

/* One line of it, in which nothing can pass for another line. */
static void copy_text(char *out, size_t size, const struct host_msg *m)
{
	size_t n = m->len < size ? m->len : size - 1;

	memcpy(out, m->data, n);
	out[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)out[i] < ' ' || out[i] == 127)
			out[i] = '?';
}

static void on_log(struct starter *s, const struct host_msg *m)
{
	char line[LOG_LINE_MAX];

	if (!take(&s->service.lines)) {
		s->service.lines_lost++;
		return;
	}
	if (s->service.lines_lost)
		log_error(s->log, "%u lines of the agent are left out: it wrote too many",
			  s->service.lines_lost);
	s->service.lines_lost = 0;
	copy_text(line, sizeof(line), m);
	log_line(s->log, m->number > LOG_LEVEL_DEBUG ? LOG_LEVEL_DEBUG :
		 (enum log_level)m->number, "%s", line);
}

static void kill_in_helper(void *arg)
{
	struct call *c = arg;

	c->host.kill_step(c->host.arg, c->data);
}

/* The agent may still have to be answered: not in this thread, if there is another. */
static void on_kill(struct starter *s, const struct host_msg *m)
{
	struct call *c;

	if (s->service.killed || !s->host.kill_step)
		return;
	s->service.killed = true;
	c = calloc(1, sizeof(*c));
	if (!c) {
		s->host.kill_step(s->host.arg, "its agent gave it up");
		return;
	}
	c->host = s->host;
	copy_text(c->data, STARTER_WHY_MAX, m);
	if (!helpers_run(s->service.helpers, kill_in_helper, free, c))
		return;
	kill_in_helper(c);
	free(c);
}

static void on_how_ended(struct starter *s, const struct host_msg *m)
{
	struct service *v = &s->service;

	if (m->number >= v->nasked || !s->host.rank_exit)
		return;
	v->asked[m->number] = starter_now() + ASK_FOR_MS;
	v->ask_ms = 0;
}

/* Says which slots are still asked for. */
static bool answer_ends(struct starter *s)
{
	struct service *v = &s->service;
	uint64_t now = starter_now();
	bool any = false;

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
			(void)host_msg_send(v->fd, &m);
			v->asked[i] = 0;
		} else if (now >= v->asked[i]) {
			v->asked[i] = 0;
		}
		any |= v->asked[i] != 0;
	}
	return any;
}

/* ---- who it is, and its end ---- */

static void on_ready(struct starter *s, const struct host_msg *m)
{
	char build[128], why[STARTER_WHY_MAX];

	copy_text(build, sizeof(build), m);
	s->service.ready = true;
	if (m->number == HOST_VERSION)
		return;
	snprintf(why, sizeof(why),
		 "node %.64s: pmi2x-agent (build %s) speaks version %u to the plugin, and the plugin (build %.128s) version %u: install both of one release",
		 starter_node_name(s), build, m->number, s->step->build,
		 HOST_VERSION);
	log_error(s->log, "%s", why);
	starter_kill(s, why);
}

/* The sender, as the kernel says it. */
static void learn_pid(struct starter *s, const struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct ucred who;

	if (s->service.pidfd >= 0 || !c || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_CREDENTIALS)
		return;
	memcpy(&who, CMSG_DATA(c), sizeof(who));
	if (who.pid > 0 && who.pid != getpid())
		s->service.pidfd = (int)syscall(SYS_pidfd_open, who.pid, 0);
}

static void kill_agent(struct starter *s)
{
	if (s->service.pidfd >= 0)
		syscall(SYS_pidfd_send_signal, s->service.pidfd, SIGKILL, NULL,
			0);
}

static void tell_to_leave(struct starter *s)
{
	const struct host_msg m = { .type = HOST_LEAVE };
	struct service *v = &s->service;

	v->leaving = true;
	v->limit = starter_now() + s->options.agent.drain_ms + STARTER_MARGIN_MS;
	(void)host_msg_send(v->fd, &m);
}

/* Of a signal that tells of a fault; SIGSYS: the filter has caught it. */
static void on_crashed(struct starter *s, const struct host_msg *m)
{
	char why[STARTER_WHY_MAX], call[32] = "";

	if (m->number == SIGSYS)
		snprintf(call, sizeof(call), " in system call %d", m->code);
	snprintf(why, sizeof(why),
		 "the agent of node %.64s crashed: signal %u%s; please report it",
		 starter_node_name(s), m->number, call);
	log_error(s->log, "%s", why);
	starter_kill(s, why);
}

bool service_step_ends_here(const struct starter *s)
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
 * Without a word. Until it has left slurmstepd's tree of processes and its cgroup, which
 * it does before it says that it is ready, it is killed with the step.
 */
static void agent_died(struct starter *s)
{
	char why[STARTER_WHY_MAX];

	if (!s->service.ready && service_step_ends_here(s))
		return;
	snprintf(why, sizeof(why),
		 "the agent of node %.64s has died: it was killed (by the user, or for want of memory: see the kernel's log there)",
		 starter_node_name(s));
	if (s->service.killed)
		return;
	log_error(s->log, "%s", why);
	starter_kill(s, why);
}

/* ---- messages ---- */

static void take_message(struct starter *s, const struct host_msg *m)
{
	switch (m->type) {
	case HOST_READY: on_ready(s, m); break;
	case HOST_FIND: on_find(s, m); break;
	case HOST_CONNECT_BACK: on_tell(s, m); break;
	case HOST_KILL: on_kill(s, m); break;
	case HOST_HOW_ENDED: on_how_ended(s, m); break;
	case HOST_LOG: on_log(s, m); break;
	case HOST_CRASHED: on_crashed(s, m); break;
	case HOST_WANT_TOPOLOGY: helper_asked(s); break;
	case HOST_END: s->service.over = true; break;
	default: break; /* what only the starter sends */
	}
}

/* 1: a message; 0: none yet; negative: the connection's end. */
static int read_message(struct starter *s)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
	char room[HOST_MSG_MAX];
	struct iovec iov = { room, sizeof(room) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct host_msg m;
	ssize_t n = recvmsg(s->service.fd, &msg, MSG_DONTWAIT);

	/* ECONNRESET: it has left answers unread; what it said still comes. */
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ||
		       errno == ECONNRESET ? 0 : -1;
	if (n == 0)
		return -1;
	learn_pid(s, &msg);
	if (host_msg_unpack(&m, room, (size_t)n)) {
		log_error(s->log, "the agent of node %s sends what makes no sense; it is ended",
			  starter_node_name(s));
		kill_agent(s);
		return -1;
	}
	take_message(s, &m);
	return 1;
}

static int read_messages(struct starter *s)
{
	int rc = 1;

	for (int i = 0; i < MESSAGES_A_TURN && rc > 0; i++)
		rc = read_message(s);
	return rc < 0 ? rc : 0;
}

/* Until when to sleep. */
static int longest_sleep(struct starter *s)
{
	struct service *v = &s->service;
	uint64_t now = starter_now();
	int ms = -1;

	if (answer_ends(s)) {
		v->ask_ms = v->ask_ms ? v->ask_ms * 2 : 1;
		if (v->ask_ms > ASK_MS_MAX)
			v->ask_ms = ASK_MS_MAX;
		ms = v->ask_ms;
	}
	if (v->leaving && (ms < 0 || v->limit - now < (uint64_t)ms))
		ms = v->limit > now ? (int)(v->limit - now) : 0;
	if (helper_left_ms(s) >= 0 && (ms < 0 || helper_left_ms(s) < ms))
		ms = helper_left_ms(s);
	return ms;
}

static bool is_late(struct starter *s)
{
	if (!s->service.leaving || starter_now() < s->service.limit)
		return false;
	log_error(s->log, "the agent of node %s does not end; it is killed",
		  starter_node_name(s));
	kill_agent(s);
	return true;
}

void service_run(struct starter *s)
{
	struct service *v = &s->service;
	struct pollfd fds[] = {
		{ .fd = v->fd, .events = POLLIN },
		{ .fd = s->wake, .events = POLLIN },
		{ .events = POLLIN },
	};
	bool ended = false;

	while (!ended) {
		int n;

		fds[2].fd = s->helper.fd;
		n = poll(fds, 3, longest_sleep(s));

		if (fds[0].revents && n > 0)
			ended = read_messages(s) < 0;
		if (n > 0 && fds[1].revents) {
			fds[1].fd = -1;
			tell_to_leave(s);
		}
		if (n > 0 && fds[2].revents)
			helper_event(s);
		helper_check(s);
		ended |= is_late(s);
	}
	if (!v->over && !v->leaving)
		agent_died(s);
}

/* ---- life ---- */

int service_open(struct starter *s)
{
	struct service *v = &s->service;
	int rc;

	v->calls = allowance(CALLS_AT_ONCE, CALLS_A_SECOND);
	v->lines = allowance(LINES_AT_ONCE, LINES_A_SECOND);
	v->nasked = s->idle.count;
	v->asked = calloc(v->nasked, sizeof(*v->asked));
	if (!v->asked)
		return -ENOMEM;
	rc = helpers_create(&v->helpers);
	return rc ? rc : helpers_create(&v->lookups);
}

/* A resolver that does not answer is left to itself. */
int service_close(struct starter *s)
{
	struct service *v = &s->service;
	int rc = helpers_destroy(v->helpers, s->options.agent.drain_ms);
	int late = helpers_destroy(v->lookups, STARTER_LINGER_MS);

	free(v->asked);
	leaf_remove(&s->leaf, LEAF_REMOVE_MS);
	leaf_free(&s->leaf);
	if (v->pidfd >= 0)
		close(v->pidfd);
	/* Who is left will answer over it. */
	if (!rc && !late && v->fd >= 0)
		close(v->fd);
	return rc ? rc : late;
}
