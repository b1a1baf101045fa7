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

	x->process = PMIXD_PROCESS_NONE;
	x->listener = x->old = x->agent = x->agents = -1;
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
	child_hang_up(&x->process.child);
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

static void fail(struct supervisor *s, const char *how)
{
	char line[SUPERVISOR_WHY_MAX];

	pmixd_process_why(line, sizeof(line), supervisor_node_name(s), how);
	log_error(s->log, "%s", line);
	service_kill(s, line);
	end(s);
}

/* ---- starting it ---- */

static int start(struct supervisor *s)
{
	const struct supervisor_pmix_options *o = &s->options.pmix;
	struct pmix *x = &s->pmix;
	const struct child_program p = launch_program(s, x->program, "pmi2x-pmixd");
	const struct pmixd_options options = {
		o->dir, o->library, o->gds, o->collect, x->port, x->leaf.dirs, false,
	};
	int *const fds[] = { &x->agent, &x->listener, &x->old };
	int rc;

	child_become_root();
	rc = leaf_make(&x->leaf);
	rc = rc ? rc : pmixd_process_start(&x->process, &p, &options, fds);
	fd_close(&x->program);
	return rc;
}

void pmix_begin(struct supervisor *s)
{
	struct pmix *x = &s->pmix;
	char how[PMIXD_WHY_MAX];
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
		snprintf(how, sizeof(how), "cannot be started: %s", strerror(-rc));
		fail(s, how);
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

static void on_serves(struct supervisor *s)
{
	if (s->pmix.client >= 0) /* it was accepted before */
		(void)pmixd_process_let_in(&s->pmix.process, s->pmix.client,
					   s->pmix.client_is_old);
	fd_close(&s->pmix.client);
	if (s->pmix.done >= 0)
		(void)eventfd_write(s->pmix.done, 1);
}

/* Until it has entered the step's cgroups these may go with the step. */
static void on_give_up(struct supervisor *s, const char *how)
{
	if (s->pmix.state == PMIX_STARTED && service_step_ends_here(s))
		end_with_step(s);
	else
		fail(s, how);
}

static void take_message(struct supervisor *s, const struct host_msg *m)
{
	if (m->type == HOST_READY)
		on_ready(s, m);
	else if (m->type == HOST_SERVES)
		on_serves(s);
	else
		service_log(s, m);
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
		fail(s, pmixd_died);
}

void pmix_event(struct supervisor *s, bool ended)
{
	char room[HOST_MSG_MAX], how[PMIXD_WHY_MAX];
	struct host_msg m;

	switch (pmixd_process_hear(&s->pmix.process, room, &m, how)) {
	case PMIXD_SAYS_NOTHING:
		if (ended)
			on_end(s);
		break;
	case PMIXD_SAYS:
		take_message(s, &m);
		break;
	case PMIXD_GIVES_UP:
		on_give_up(s, how);
		break;
	case PMIXD_HAS_DIED:
		on_end(s);
		break;
	case PMIXD_HAS_FAILED:
		fail(s, how);
	}
}

void pmix_close(struct supervisor *s)
{
	struct pmix *x = &s->pmix;
	bool was_started = x->process.dir >= 0;

	end(s);
	pmixd_process_kill(&x->process);
	(void)leaf_remove(&x->leaf, LEAF_REMOVE_MS);
	leaf_free(&x->leaf);
	fd_close(&x->program);
	fd_close(&x->agents);
	fd_close(&x->rank);
	fd_close(&x->done);
	fd_close(&x->over);
	pmixd_process_forget(&x->process, s->options.pmix.dir);
	if (was_started) /* not at the start, where ranks wait */
		user_dir_remove_stale(s->options.pmix.dir, SUPERVISOR_PMIX_DIR_PREFIX);
}

void pmix_abandon(const struct supervisor *s)
{
	const struct pmix *x = &s->pmix;
	int dir = x->process.dir < 0 ? -1 : fcntl(x->process.dir, F_DUPFD_CLOEXEC, 0);

	pmixd_process_kill(&x->process);
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
