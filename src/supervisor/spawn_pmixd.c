/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-pmixd, which serves the node's PMIx clients. Until one connects, or until the
 * first rank comes where it is known that ranks will connect, there is its listening
 * socket only. It is started once; its end ends the step.
 *
 * It loads libpmix, which may run what the user has written. So it stays on the step's
 * processors and devices, in cgroups that there are once a rank has come, and in which
 * slurmstepd is until all ranks have ended.
 */
#include "supervisor/supervisor_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/pmixd/pmixd.h"
#include "libio/hang_up.h"
#include "libio/listener_socket.h"
#include "supervisor/accept_user.h"
#include "supervisor/user_dir.h"

#define MORE_MAX (PMIXD_ARGS - 5 + LEAF_DIRS_MAX) /* behind STEP and NODE */
#define PORT_TEXT 8
#define END_MS 1000 /* for the kernel to end what has been killed */

_Static_assert((int)PMIXD_FD_END <= (int)AGENT_FD_END, "descriptors are moved up to there");
_Static_assert(PMIXD_ARGS + LEAF_DIRS_MAX <= CHILD_ARGS_MAX, "arguments");

/* ---- before it is started ---- */

static int listen_here(int *fd, uint16_t *port)
{
	struct sockaddr_storage here = { .ss_family = AF_INET };
	struct sockaddr_in *in = (struct sockaddr_in *)&here;

	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*fd = listener_socket(&here, 0, port);
	return *fd < 0 ? *fd : 0;
}

int pmix_open(struct supervisor *s)
{
	struct pmix *x = &s->pmix;
	int rc;

	x->child = CHILD_NONE;
	x->listener = x->old = x->agent = x->agents = x->dir = -1;
	x->rank = x->done = x->over = x->program = x->client = -1;
	if (s->options.pmix.when == PMIX_START_NEVER)
		return 0;
	x->program = supervisor_program_open(s->options.pmix.program);
	x->state = PMIX_WAITING;
	rc = listen_here(&x->listener, &x->port);
	rc = rc ? rc : listen_here(&x->old, &x->old_port);
	if (rc)
		return rc;
	x->rank = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (x->rank < 0 || s->options.pmix.when != PMIX_START_EARLY)
		return x->rank < 0 ? -errno : 0;
	x->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	x->over = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return x->done < 0 || x->over < 0 ? -errno : 0;
}

void pmix_set_fds(const struct supervisor *s, struct pollfd *fds)
{
	const struct pmix *x = &s->pmix;
	bool waits = x->state == PMIX_WAITING;

	for (int i = 0; i < PMIX_POLLS; i++)
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	if (waits && !x->ranks_have_come)
		fds[PMIX_POLL_RANK].fd = x->rank;
	if (waits && x->ranks_have_come) {
		fds[PMIX_POLL_LISTENER].fd = x->listener;
		fds[PMIX_POLL_OLD].fd = x->old;
	}
}

/* True: a client of the step's user has connected. */
static bool is_asked(struct supervisor *s, const struct pollfd *fds)
{
	struct pmix *x = &s->pmix;
	uid_t uid = s->options.program.uid;

	if (s->options.pmix.when == PMIX_START_EARLY)
		return true;
	if (fds[PMIX_POLL_LISTENER].revents && accept_user(x->listener, uid, &x->client))
		return true;
	x->client_is_old = fds[PMIX_POLL_OLD].revents &&
			   accept_user(x->old, uid, &x->client);
	return x->client_is_old;
}

bool pmix_is_due(struct supervisor *s, const struct pollfd *fds)
{
	struct pmix *x = &s->pmix;

	x->ranks_have_come |= fds[PMIX_POLL_RANK].revents != 0;
	return x->state == PMIX_WAITING && x->ranks_have_come && is_asked(s, fds);
}

void supervisor_rank_comes(const struct supervisor *s)
{
	if (s->pmix.rank >= 0)
		(void)eventfd_write(s->pmix.rank, 1);
}

int pmix_connect_agent(struct supervisor *s)
{
	int ends[2];

	if (s->options.pmix.when == PMIX_START_NEVER)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	s->pmix.agents = ends[0];
	s->pmix.agent = ends[1];
	return 0;
}

/* ---- its end ---- */

static void end(struct supervisor *s)
{
	struct pmix *x = &s->pmix;

	x->state = PMIX_ENDED;
	child_hang_up(&x->child);
	fd_close(&x->listener);
	fd_close(&x->old);
	fd_close(&x->client);
	hang_up(&x->agent); /* the agent may have written */
	if (x->done >= 0)
		(void)eventfd_write(x->done, 1);
}

void pmix_refuse_ranks(const struct supervisor *s)
{
	if (s->pmix.done < 0)
		return;
	(void)eventfd_write(s->pmix.over, 1);
	(void)eventfd_write(s->pmix.done, 1);
}

/* The node's ranks have ended, or are being ended: no rank asks for PMIx. */
static void end_with_step(struct supervisor *s)
{
	pmix_refuse_ranks(s);
	end(s);
}

static void fail(struct supervisor *s, const char *what, const char *why)
{
	char line[SUPERVISOR_WHY_MAX];

	snprintf(line, sizeof(line), "the PMIx server of node %.64s %s%.300s",
		 supervisor_node_name(s), what, why);
	log_error(s->log, "%s", line);
	service_kill(s, line);
	end(s);
}

/* ---- starting it ---- */

static int execute(struct supervisor *s, int *host)
{
	struct pmix *x = &s->pmix;
	const struct supervisor_pmix_options *o = &s->options.pmix;
	char port[PORT_TEXT], *more[MORE_MAX + 1] = {
		(char *)o->dir, (char *)o->library, (char *)o->gds,
		(char *)o->collect, port,
	};
	int none = -1, *const fds[] = { &x->agent, host, &x->listener, &x->old, &none };
	struct child_program p = launch_program(s, x->program, "pmi2x-pmixd");
	int rc;

	if (x->program < 0)
		return x->program;
	snprintf(port, sizeof(port), "%u", x->port);
	memcpy(more + PMIXD_ARGS - 5, x->leaf.dirs, sizeof(x->leaf.dirs));
	p.more = more;
	p.fds = fds;
	p.nfds = sizeof(fds) / sizeof(*fds);
	rc = child_start(&x->child, &p);
	fd_close(&x->program);
	return rc;
}

static int start(struct supervisor *s)
{
	const struct supervisor_pmix_options *o = &s->options.pmix;
	int rc, host = -1;

	child_become_root();
	rc = leaf_make(&s->pmix.leaf);
	if (rc)
		return rc;
	s->pmix.dir = user_dir_make(o->dir, s->options.program.uid,
				    s->options.program.gid);
	if (s->pmix.dir < 0)
		return s->pmix.dir;
	rc = child_connect(&s->pmix.child, &host);
	rc = rc ? rc : execute(s, &host);
	fd_close(&host);
	return rc;
}

void pmix_begin(struct supervisor *s)
{
	struct pmix *x = &s->pmix;
	int rc;

	if (x->state != PMIX_WAITING)
		return;
	x->state = PMIX_STARTED;
	rc = launch_find_leaf(s, LEAF_CONFINED, &x->leaf);
	/* Not all had ended by then: so slurmstepd was still in the step's cgroups. */
	if (service_step_ends_here(s)) {
		end_with_step(s);
		return;
	}
	rc = rc ? rc : start(s);
	if (rc) {
		fail(s, "cannot be started: ", strerror(-rc));
		return;
	}
	fd_close(&x->listener);
	fd_close(&x->old);
	fd_close(&x->agent);
}

/* ---- what it says ---- */

static void on_ready(struct supervisor *s, const struct host_msg *m)
{
	struct pmix *x = &s->pmix;

	if (!service_fits(s, "pmi2x-pmixd", m))
		return;
	x->state = PMIX_READY;
}

/* The client that was accepted before it ran. */
static void pass_client(struct pmix *x)
{
	const struct host_msg m = { .type = HOST_CLIENT, .number = x->client_is_old };
	const struct passed_fds fds = { .count = 1, .fds = { x->client } };

	if (x->client >= 0)
		(void)host_msg_send_with(x->child.fd, &m, &fds);
	fd_close(&x->client);
}

static void on_serves(struct supervisor *s)
{
	pass_client(&s->pmix);
	if (s->pmix.done >= 0)
		(void)eventfd_write(s->pmix.done, 1);
}

/* Until it has entered the step's cgroups these may go with the step. */
static void on_give_up(struct supervisor *s, const struct host_msg *m)
{
	char text[SUPERVISOR_WHY_MAX];

	child_text(text, sizeof(text), m);
	if (s->pmix.state == PMIX_STARTED && service_step_ends_here(s))
		end_with_step(s);
	else
		fail(s, "cannot serve: ", text);
}

static void take_message(struct supervisor *s, const struct host_msg *m)
{
	char text[SUPERVISOR_WHY_MAX];

	switch (m->type) {
	case HOST_READY:
		on_ready(s, m);
		break;
	case HOST_SERVES:
		on_serves(s);
		break;
	case HOST_LOG:
		service_log(s, m);
		break;
	case HOST_KILL:
		on_give_up(s, m);
		break;
	case HOST_CRASHED:
		snprintf(text, sizeof(text), "%u; please report it", m->number);
		fail(s, "crashed: signal ", text);
		break;
	default:
		fail(s, "sent an invalid message", "");
	}
}

/*
 * pmixd leaves with the agent. Before it is ready it may be killed together with the ranks.
 */
static void on_end(struct supervisor *s)
{
	if (s->service.leaving || (s->pmix.state == PMIX_STARTED &&
				   service_step_ends_here(s)))
		end(s);
	else
		fail(s, "has died: it was killed (by the user, or for lack of memory: see the kernel's log there)",
		     "");
}

void pmix_event(struct supervisor *s, bool ended)
{
	char room[HOST_MSG_MAX];
	struct host_msg m;

	switch (child_receive(&s->pmix.child, room, &m)) {
	case 0:
		if (ended)
			on_end(s);
		break;
	case 1:
		take_message(s, &m);
		break;
	case -EPIPE:
		on_end(s);
		break;
	default:
		fail(s, "sent an invalid message", "");
	}
}

void pmix_close(struct supervisor *s)
{
	struct pmix *x = &s->pmix;

	end(s);
	child_kill(&x->child);
	child_wait_end(&x->child, END_MS);
	child_forget(&x->child);
	(void)leaf_remove(&x->leaf, LEAF_REMOVE_MS);
	leaf_free(&x->leaf);
	fd_close(&x->program);
	fd_close(&x->agents);
	fd_close(&x->rank);
	fd_close(&x->done);
	fd_close(&x->over);
	if (x->dir < 0)
		return;
	(void)user_dir_remove(x->dir, s->options.pmix.dir);
	x->dir = -1;
	/* Not at the start, where ranks wait. */
	user_dir_remove_stale(s->options.pmix.dir, SUPERVISOR_PMIX_DIR_PREFIX);
}

void pmix_abandon(const struct supervisor *s)
{
	const struct pmix *x = &s->pmix;
	int dir = x->dir < 0 ? -1 : fcntl(x->dir, F_DUPFD_CLOEXEC, 0);

	child_kill(&x->child);
	child_wait_end(&x->child, END_MS);
	(void)leaf_remove(&x->leaf, LEAF_REMOVE_MS);
	if (dir >= 0)
		(void)user_dir_remove(dir, s->options.pmix.dir);
}

uint16_t supervisor_pmix_port(const struct supervisor *s, bool old)
{
	return old ? s->pmix.old_port : s->pmix.port;
}

bool supervisor_pmix_wait(const struct supervisor *s, int ms)
{
	return s->pmix.done < 0 || supervisor_wait_event(s->pmix.done, ms);
}

bool supervisor_pmix_refused(const struct supervisor *s)
{
	return s->pmix.over >= 0 && supervisor_wait_event(s->pmix.over, 0);
}
