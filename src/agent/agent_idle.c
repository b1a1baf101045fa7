/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent of a step that does not use PMI (yet): what it holds, and what it
 * waits for. It listens, ranks register, and nothing else is made: most of
 * what `srun program` starts never speaks to the agent, and shall not pay for
 * it. The first byte of a rank, a connection of a neighbour or a told message
 * ends this state for good; then agent.c opens the rest.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/registration.h"

enum idle_poll {
	IDLE_WAKE,
	IDLE_REGISTRATION,
	IDLE_LISTENER,
	IDLE_TELL,
	IDLE_RANKS, /* and a descriptor for each slot */
};

int agent_idle_open(struct agent *a)
{
	struct agent_idle *idle = calloc(1, sizeof(*idle));
	int rc;

	if (!idle)
		return -ENOMEM;
	a->idle = idle;
	idle->ours = idle->theirs = idle->listener = idle->region = -1;
	layout_ranks_at(a->step->layout, a->step->position, &idle->count);
	idle->ranks = calloc(idle->count, sizeof(*idle->ranks));
	idle->fds = calloc(IDLE_RANKS + idle->count, sizeof(*idle->fds));
	if (!idle->ranks || !idle->fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < idle->count; i++)
		idle->ranks[i].fd = idle->ranks[i].pidfd = -1;
	rc = registration_open(a->options.rank_fd, &idle->ours, &idle->theirs);
	if (rc)
		return rc;
	if (a->options.region_size) {
		idle->region = region_object_create();
		if (idle->region < 0)
			return idle->region;
	}
	return agent_wireup_listen(a);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void agent_idle_free(struct agent *a)
{
	struct agent_idle *idle = a->idle;

	if (!idle)
		return;
	for (uint32_t i = 0; idle->ranks && i < idle->count; i++) {
		close_fd(&idle->ranks[i].fd);
		close_fd(&idle->ranks[i].pidfd);
	}
	close_fd(&idle->listener);
	close_fd(&idle->region);
	close_fd(&idle->ours);
	close_fd(&idle->theirs);
	free(idle->ranks);
	free(idle->fds);
	free(idle);
	a->idle = NULL;
}

void agent_idle_refuse_ranks(struct agent *a)
{
	struct agent_idle *idle = a->idle;

	/* Descriptors may be what is lacking, and to end the step takes some. */
	close_fd(&idle->ours);
	close_fd(&idle->listener);
	close_fd(&idle->region);
	for (uint32_t i = 0; i < idle->count; i++) {
		close_fd(&idle->ranks[i].pidfd);
		close_fd(&idle->ranks[i].fd);
	}
}

/* ---- ranks ---- */

/* Later it may be too late to ask who it is. */
static void find_process(struct agent_idle *idle, struct idle_rank *r)
{
	if (!idle->pidfd_later)
		r->pidfd = registration_pidfd(r->fd, &idle->pidfd_later);
}

static void add_rank(struct agent *a, const struct registration *reg,
		     struct pollfd *fds)
{
	struct agent_idle *idle = a->idle;
	struct idle_rank *r;

	if (reg->lost)
		idle->error = -EMFILE;
	if (reg->fd < 0)
		return;
	if (reg->slot >= idle->count || idle->ranks[reg->slot].fd >= 0) {
		agent_ranks_refuse(a, reg, reg->slot < idle->count);
		return;
	}
	r = &idle->ranks[reg->slot];
	r->fd = reg->fd;
	find_process(idle, r);
	fds[IDLE_RANKS + reg->slot].fd = r->fd;
}

static void add_ranks(struct agent *a, struct pollfd *fds)
{
	struct registration reg[REGISTRATIONS_AT_ONCE];
	int n = registration_receive(a->idle->ours, reg);

	if (n < 0)
		a->idle->error = n;
	for (int i = 0; i < n; i++)
		add_rank(a, &reg[i], fds);
}

/*
 * Has this rank said something? One that has hung up, or will say nothing more
 * (shutdown), is looked at no more; the engine learns of its end if it is ever needed.
 */
static bool has_spoken(struct pollfd *fd)
{
	char byte;
	ssize_t n;

	if (!fd->revents)
		return false;
	n = recv(fd->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		fd->fd = -1;
	return n > 0;
}

/* ---- waiting ---- */

static bool is_wanted(struct agent *a, struct pollfd *fds)
{
	bool wanted = fds[IDLE_LISTENER].revents || fds[IDLE_TELL].revents;

	for (uint32_t i = 0; i < a->idle->count; i++)
		wanted |= has_spoken(&fds[IDLE_RANKS + i]);
	if (fds[IDLE_REGISTRATION].revents)
		add_ranks(a, fds);
	return wanted || a->idle->error; /* which begin() then fails by */
}

static void set_fds(struct agent *a, struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	fds[IDLE_WAKE].fd = loop_wake_fd(a->loop);
	fds[IDLE_REGISTRATION].fd = a->idle->ours;
	fds[IDLE_LISTENER].fd = a->idle->listener;
	fds[IDLE_TELL].fd = a->options.tell_fd;
}

/* The first node wakes up once, so that srun can ask: see agent_state.h. */
static int longest_sleep(const struct agent *a)
{
	bool asked = a->step->position == 0 &&
		     a->options.launcher.ss_family != AF_UNSPEC;

	return asked ? STATE_LINE_MS : -1;
}

/* poll takes no more descriptors than the process may open, and says EINVAL. */
static int poll_error(int error)
{
	if (error == EINTR)
		return 0;
	return error == EINVAL ? -EMFILE : -error;
}

bool agent_idle_wait(struct agent *a)
{
	nfds_t n = IDLE_RANKS + a->idle->count;
	struct pollfd *fds = a->idle->fds;
	bool wanted = false;

	set_fds(a, fds, n);
	while (!wanted) {
		int ready = poll(fds, n, longest_sleep(a));

		if (ready < 0) {
			a->idle->error = poll_error(errno);
			wanted = a->idle->error;
			continue;
		}
		wanted = is_wanted(a, fds) || !ready;
		if (fds[IDLE_WAKE].revents && !wanted) {
			/* A trace is sent also of what was not used. */
			wanted = !atomic_load(&a->stopping) ||
				 a->options.trace;
			break;
		}
	}
	return wanted;
}
