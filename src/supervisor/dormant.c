/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A step that does not use PMI (yet): what its supervisor holds, and what it
 * waits for. It listens, ranks register, and nothing else is made: most of
 * what `srun program` starts never speaks to an agent, and shall not pay for
 * one. The first byte of a rank, a connection of a neighbour or a told message
 * ends this state for good, and so does a caller of pmi2x-sync; on the first node, a rank that closes PMI_FD does, too.
 */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/stopped.h"
#include "agent/unspoken.h"
#include "libio/hang_up.h"
#include "libio/listener_socket.h"
#include "libio/peer.h"
#include "libio/proc_stat.h"
#include "libpmi/cause.h"
#include "libshm/region.h"

enum dormant_poll {
	DORMANT_WAKE,
	DORMANT_REGISTRATION,
	DORMANT_LISTENER,
	DORMANT_CONNECT_BACK,
	DORMANT_SYNC,
	DORMANT_TORCH,
	DORMANT_TOPOLOGY,
	DORMANT_PMIX,
	DORMANT_RANKS = DORMANT_PMIX + PMIX_POLLS, /* then a descriptor for each slot */
};

/* ---- what is there from the beginning ---- */

static bool is_slurms(const struct supervisor *s, uint16_t port)
{
	for (size_t i = 0; i < SUPERVISOR_SLURM_PORTS; i++) {
		const struct supervisor_ports *p = &s->options.slurm_ports[i];

		if (p->first && port >= p->first && port <= p->last)
			return true;
	}
	return false;
}

static int try_port(struct supervisor *s, uint16_t port)
{
	if (port && is_slurms(s, port))
		return -EADDRINUSE;
	return listener_socket(&s->options.agent.bind, port, &s->dormant.port);
}

/* A listening descriptor or a negative errno. */
static int listen_somewhere(struct supervisor *s)
{
	const struct agent_options *o = &s->options.agent;
	int fd = -EADDRINUSE;

	if (o->port_first == 0)
		return try_port(s, 0);
	for (uint32_t i = 0; fd == -EADDRINUSE && i < STEP_PORT_TRIES; i++)
		fd = try_port(s, step_port(o, s->step->layout,
					   s->step->position, i));
	if (fd == -EADDRINUSE)
		log_info(s->log,
			 "the %u ports where other nodes expect this node are in use: the node listens on another port, and tells them through slurmd",
			 STEP_PORT_TRIES);
	for (uint32_t p = o->port_first; fd == -EADDRINUSE && p <= o->port_last;
	     p++)
		fd = try_port(s, p);
	return fd;
}

static int listen_for_neighbours(struct supervisor *s)
{
	int fd;

	if (layout_nodes(s->step->layout) < 2)
		return 0;
	fd = listen_somewhere(s);
	if (fd == -EADDRINUSE)
		log_error(s->log,
			  "every port from %u to %u is in use: widen the range (Pmi2xPorts)",
			  s->options.agent.port_first,
			  s->options.agent.port_last);
	else if (fd < 0)
		log_error(s->log, "cannot listen for other nodes: %s",
			  strerror(-fd));
	if (fd < 0)
		return fd;
	s->dormant.listener = fd;
	return 0;
}

/* The caller keeps the port. */
static int listen_for_torch(struct supervisor *s)
{
	struct sockaddr_storage where = { .ss_family = AF_UNSPEC };
	struct sockaddr_in *loopback = (struct sockaddr_in *)&where;
	uint16_t port = s->options.torch_port;
	int fd;

	if (!port)
		return 0;
	if (s->options.torch_loopback) {
		loopback->sin_family = AF_INET;
		loopback->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	fd = port_listen_kept(&where, port);
	if (fd < 0)
		log_error(s->log, "cannot listen at port %u for PyTorch's TCPStore: %s",
			  s->options.torch_port, strerror(-fd));
	s->dormant.torch = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

static int make_ranks(struct dormant *dormant)
{
	dormant->ranks = calloc(dormant->count, sizeof(*dormant->ranks));
	dormant->fds = calloc(DORMANT_RANKS + dormant->count, sizeof(*dormant->fds));
	if (!dormant->ranks || !dormant->fds)
		return -ENOMEM;
	for (uint32_t i = 0; i < dormant->count; i++)
		dormant->ranks[i].fd = dormant->ranks[i].pidfd = -1;
	return 0;
}

int dormant_open(struct supervisor *s)
{
	struct dormant *dormant = &s->dormant;
	int rc;

	dormant->ours = dormant->theirs = dormant->listener = dormant->region = -1;
	dormant->torch = -1;
	dormant->connect_back = s->options.connect_back_fd;
	layout_ranks_at(s->step->layout, s->step->position, &dormant->count);
	rc = make_ranks(dormant);
	rc = rc ? rc : registration_open(s->options.rank_fd, &dormant->ours,
					 &dormant->theirs);
	if (rc)
		return rc;
	if (s->options.agent.region_size) {
		dormant->region = region_object_create();
		if (dormant->region < 0)
			return dormant->region;
	}
	rc = listen_for_torch(s);
	return rc ? rc : listen_for_neighbours(s);
}

/* ---- ranks ---- */

static void add_rank(struct supervisor *s, struct registration *reg)
{
	struct dormant *dormant = &s->dormant;

	if (reg->lost)
		dormant->error = -EMFILE;
	if (reg->fd < 0)
		return;
	if (reg->slot >= dormant->count || dormant->ranks[reg->slot].fd >= 0) {
		registration_refuse(reg, reg->slot < dormant->count, s->log);
		return;
	}
	dormant->ranks_have_come = true;
	registration_find_process(reg, &dormant->pidfd_later);
	topology_met_rank(s, reg->fd);
	dormant->ranks[reg->slot] = *reg;
	dormant->fds[DORMANT_RANKS + reg->slot].fd = reg->fd;
}

static void add_ranks(struct supervisor *s)
{
	struct registration reg[REGISTRATIONS_AT_ONCE];
	int n = registration_receive(s->dormant.ours, reg);

	if (n < 0)
		s->dormant.error = n;
	for (int i = 0; i < n; i++)
		add_rank(s, &reg[i]);
}

/*
 * A process that has closed PMI_FD and lives on is a wrapper, as csh, or a daemon. Where it
 * fails srun is told why, which only an agent can do: srun ends with the last rank. All
 * nodes run the same wrapper, so the first one will do.
 */
static bool note_closer(struct supervisor *s, uint32_t slot)
{
	struct agent_options *o = &s->options.agent;
	struct dormant *dormant = &s->dormant;
	struct ucred peer;

	if (s->step->position || o->closed_by || o->launcher.ss_family == AF_UNSPEC ||
	    peer_credentials(dormant->ranks[slot].fd, &peer) || peer.pid <= 0 ||
	    peer.pid == getpid() ||
	    !process_lives(peer.pid, dormant->closed_by, sizeof(dormant->closed_by)))
		return false;
	o->closed_by = dormant->closed_by;
	o->closed_slot = slot;
	return true;
}

/*
 * How a rank has ended that has hung up. The process may be ending: Slurm has not waited for
 * it then, and its lines still reach the user.
 */
static bool find_exit(const struct supervisor *s, uint32_t slot, struct pmi_exit *end)
{
	struct proc_stat now;
	struct ucred peer;

	*end = (struct pmi_exit){ 0 };
	if (!peer_credentials(s->dormant.ranks[slot].fd, &peer) && peer.pid > 0 &&
	    peer.pid != getpid() && proc_stat_read((uint64_t)peer.pid, &now) && now.status) {
		end->status = now.status;
		return true;
	}
	return s->host.rank_exit && s->host.rank_exit(s->host.arg, slot, end);
}

/*
 * A rank has failed as one does whose program lacks PMI_FD. A wrapper that keeps PMI_FD open
 * itself cannot be seen: the rank hangs up when it exits.
 */
static void tell_lack(struct supervisor *s, uint32_t slot)
{
	struct agent_options *o = &s->options.agent;
	char how[CAUSE_MAX];
	struct pmi_exit end;
	uint32_t count;

	if (o->wrapper == WRAPPER_NONE || !find_exit(s, slot, &end) ||
	    !cause_may_lack_fd(&end, o->wrapper))
		return;
	o->wrapper = WRAPPER_NONE;
	cause_text(&end, how);
	log_error(s->log, "rank %u (node %s) %s without starting PMI: " CAUSE_LACKS_FD,
		  layout_ranks_at(s->step->layout, s->step->position, &count)[slot],
		  supervisor_node_name(s), how);
}

/*
 * True: the rank has sent something for an agent. A rank that hung up or shut down its side
 * is no longer polled; the engine learns of its end if that matters.
 */
static bool needs_agent(struct supervisor *s, uint32_t slot)
{
	struct pollfd *fd = &s->dormant.fds[DORMANT_RANKS + slot];
	char byte;
	ssize_t n;

	if (!fd->revents)
		return false;
	n = recv(fd->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 || (n < 0 && errno == EAGAIN))
		return n > 0;
	fd->fd = -1;
	if (note_closer(s, slot))
		return true;
	tell_lack(s, slot);
	return false;
}

/* Ranks that have come, and have gone without a word. */
static uint32_t count_gone(const struct supervisor *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->dormant.count; i++)
		n += s->dormant.ranks[i].fd >= 0 &&
		     s->dormant.fds[DORMANT_RANKS + i].fd < 0;
	return n;
}

/*
 * The spawner of the step may wait for a rank that has gone, while others of the node
 * go on. When all have gone the step ends on this node: slurmstepd then kills what it
 * has just started, so the agent has to wait for supervisor_stop.
 */
static bool some_have_gone(const struct supervisor *s)
{
	uint32_t gone = count_gone(s);

	return gone && gone < s->dormant.count;
}

static bool has_ended(struct registration *r)
{
	if (r->pidfd == -1)
		r->pidfd = registration_process(r);
	return r->pidfd == -ESRCH ||
	       (r->pidfd >= 0 && supervisor_wait_event(r->pidfd, 0));
}

static bool all_have_ended(const struct supervisor *s)
{
	for (uint32_t i = 0; i < s->dormant.count; i++)
		if (s->dormant.ranks[i].fd < 0 || !has_ended(&s->dormant.ranks[i]))
			return false;
	return true;
}

/* ---- waiting ---- */

/*
 * True: a neighbour asks for the agent. slurmstepd would kill an agent that starts while
 * the step is ended, so calls then wait for supervisor_stop, which lets the agent report
 * spawned ranks: see above.
 */
static bool is_called(const struct supervisor *s)
{
	struct pollfd *fds = s->dormant.fds;

	if (!fds[DORMANT_LISTENER].revents && !fds[DORMANT_CONNECT_BACK].revents)
		return false;
	if (!s->step->spawned || !all_have_ended(s))
		return true;
	fds[DORMANT_LISTENER].fd = fds[DORMANT_CONNECT_BACK].fd = -1;
	return false;
}

static bool is_wanted(struct supervisor *s)
{
	struct pollfd *fds = s->dormant.fds;
	bool wanted = is_called(s);

	for (uint32_t i = 0; i < s->dormant.count; i++)
		wanted |= needs_agent(s, i);
	wanted |= s->step->spawned && some_have_gone(s);
	wanted |= fds[DORMANT_SYNC].revents && sync_is_asked(s);
	wanted |= fds[DORMANT_TORCH].revents != 0;
	if (fds[DORMANT_REGISTRATION].revents)
		add_ranks(s);
	wanted |= s->dormant.ranks_have_come && s->options.agent.torch_ports_wanted;
	if (fds[DORMANT_TOPOLOGY].revents)
		topology_event(s);
	fds[DORMANT_TOPOLOGY].fd = s->topology.child.fd;
	s->dormant.wants_pmix = pmix_is_due(s, &fds[DORMANT_PMIX]);
	pmix_set_fds(s, &fds[DORMANT_PMIX]);
	return wanted || s->dormant.wants_pmix || s->dormant.error;
}

static void set_fds(struct supervisor *s, nfds_t n)
{
	struct pollfd *fds = s->dormant.fds;

	for (nfds_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	fds[DORMANT_WAKE].fd = s->wake;
	fds[DORMANT_REGISTRATION].fd = s->dormant.ours;
	fds[DORMANT_LISTENER].fd = s->dormant.listener;
	fds[DORMANT_CONNECT_BACK].fd = s->dormant.connect_back;
	fds[DORMANT_SYNC].fd = s->sync.listener;
	fds[DORMANT_TORCH].fd = s->dormant.torch;
	pmix_set_fds(s, &fds[DORMANT_PMIX]);
}

/* The first node wakes up once, so that srun can ask: see STATUS_LINE_MS. */
static int longest_sleep(const struct supervisor *s)
{
	bool asked = s->step->position == 0 &&
		     s->options.agent.launcher.ss_family != AF_UNSPEC;

	return asked ? STATUS_LINE_MS : -1;
}

/* poll takes no more descriptors than the process may open, and says EINVAL. */
static int poll_error(int error)
{
	if (error == EINTR)
		return 0;
	return error == EINVAL ? -EMFILE : -error;
}

/* A step that is ending is not asked about. */
static bool has_ranks(const struct supervisor *s)
{
	for (uint32_t i = 0; i < s->dormant.count; i++)
		if (s->dormant.fds[DORMANT_RANKS + i].fd >= 0)
			return true;
	return false;
}

/*
 * At the end: a trace is sent also of what was not used; and who has spawned ranks may
 * wait for them, also for those that have come and gone before anybody looked.
 */
static bool is_worth_telling(const struct supervisor *s)
{
	bool any = s->options.agent.trace;

	for (uint32_t i = 0; i < s->dormant.count; i++)
		any |= s->step->spawned && s->dormant.ranks[i].fd >= 0;
	return any;
}

static void tell_unspoken(struct supervisor *s)
{
	if (!s->options.agent.tell_unspoken ||
	    count_gone(s) < s->dormant.count)
		return;
	unspoken_say(s->log, layout_ranks(s->step->layout));
	s->options.agent.tell_unspoken = false;
}

bool dormant_wait(struct supervisor *s)
{
	nfds_t n = DORMANT_RANKS + s->dormant.count;
	struct pollfd *fds = s->dormant.fds;
	int sleep_ms = longest_sleep(s);
	bool wanted = false;

	set_fds(s, n);
	while (!wanted) {
		int ready = poll(fds, n, sleep_ms);

		if (ready < 0) {
			s->dormant.error = poll_error(errno);
			wanted = s->dormant.error;
			continue;
		}
		wanted = is_wanted(s) || (!ready && has_ranks(s));
		if (!ready)
			sleep_ms = -1;
		if (!wanted)
			tell_unspoken(s);
		if (fds[DORMANT_WAKE].revents && !wanted)
			return is_worth_telling(s);
	}
	return wanted;
}

/* ---- the end ---- */

int dormant_pass_ranks(struct supervisor *s)
{
	int rc = 0;

	for (uint32_t i = 0; i < s->dormant.count; i++) {
		struct registration *r = &s->dormant.ranks[i];
		int failed = r->fd < 0 ? 0 :
			     registration_pass(s->dormant.theirs, r);

		rc = rc ? rc : failed;
	}
	return rc;
}

void dormant_hand_over(struct supervisor *s)
{
	struct dormant *dormant = &s->dormant;

	fd_close(&dormant->ours);
	fd_close(&dormant->listener);
	fd_close(&dormant->region);
	fd_close(&dormant->connect_back);
	fd_close(&dormant->torch);
	sync_hand_over(s);
}

void dormant_refuse_ranks(struct supervisor *s)
{
	struct dormant *dormant = &s->dormant;

	/* No agent has these. Processes of the user may have put descriptors in. */
	hang_up(&dormant->ours);
	hang_up_listener(&dormant->connect_back);
	sync_refuse(s);
	/* Descriptors may be what is lacking, and to end the step takes some. */
	dormant_hand_over(s);
	for (uint32_t i = 0; i < dormant->count; i++) {
		fd_close(&dormant->ranks[i].pidfd);
		hang_up(&dormant->ranks[i].fd);
	}
}

void dormant_close(struct supervisor *s)
{
	struct dormant *dormant = &s->dormant;

	if (!dormant->ranks)
		dormant->count = 0;
	dormant_refuse_ranks(s);
	hang_up(&dormant->theirs); /* the agent may have written */
	free(dormant->ranks);
	free(dormant->fds);
}
