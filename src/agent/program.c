/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent as a process. Its host is the process that started it, at the other end of a
 * socket pair. When the host ends, the step ends, too.
 */
#include "agent/program.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/netinfo.h"
#include "libconfine/host_out.h"
#include "libio/loop.h"
#include "libpmi/mapping.h"

#define LINES_KEPT_MAX 512 /* of the log, for which the host has no room */

struct program {
	struct setup setup;
	void *bytes;      /* bytes of the setup, to which its texts point */
	size_t len;
	char *mapping;
	char *netinfo;    /* NULL until a rank has asked */
	int host_fd;
	struct host_out out; /* to it */
	uv_poll_t poll;   /* of it */
	bool polling;
	struct loop *loop;
	struct agent *agent;
	struct log_hook log;
	struct budget budget;
};

/* ---- to the host ---- */

static void on_host(uv_poll_t *poll, int status, int events);

/* Until the host has room for what is kept. */
static void watch_host(struct program *p)
{
	if (p->polling)
		uv_poll_start(&p->poll, UV_READABLE | (p->out.count ? UV_WRITABLE : 0),
			      on_host);
}

/* 0 or a negative errno: it has not been said, and will not be. */
static int say(struct program *p, enum host_type type, uint32_t number,
	       int32_t code, const void *data, size_t len)
{
	const struct host_msg m = { type, number, code, data, len };
	unsigned int before = p->out.count;
	int rc = host_out_send(&p->out, p->host_fd, &m);

	if (!before && p->out.count)
		watch_host(p);
	return rc;
}

/* The host takes fewer lines than that at once. */
static void keep_line(void *arg, enum log_level level, const char *text)
{
	struct program *p = arg;

	if (p->out.count > LINES_KEPT_MAX)
		return;
	if (level != LOG_LEVEL_DEBUG || p->setup.options.debug)
		(void)say(p, HOST_LOG, level, 0, text, strlen(text));
}

static void find_node(void *arg, uint32_t node_id)
{
	struct program *p = arg;
	int rc;

	for (uint32_t i = 0; i < p->setup.nknown; i++) {
		if (p->setup.known[i].node_id != node_id)
			continue;
		agent_node_found(p->agent, node_id, 0, &p->setup.known[i].addr);
		return;
	}
	rc = say(p, HOST_FIND, node_id, 0, NULL, 0);
	if (rc)
		agent_node_found(p->agent, node_id, rc, NULL);
}

static int connect_back(void *arg, uint32_t node_id, const void *data, size_t len)
{
	return say(arg, HOST_CONNECT_BACK, node_id, 0, data, len);
}

/* The request must arrive; the host expects nothing more of this agent. */
static void kill_step(void *arg, const char *why)
{
	struct program *p = arg;

	(void)say(p, HOST_KILL, 0, 0, why, strlen(why));
	(void)host_out_drain(&p->out, p->host_fd);
}

static void ask_rank_end(void *arg, uint32_t slot)
{
	(void)say(arg, HOST_HOW_ENDED, slot, 0, NULL, 0);
}

static void want_topology(void *arg)
{
	int rc = say(arg, HOST_WANT_TOPOLOGY, 0, 0, NULL, 0);
	struct program *p = arg;

	if (rc)
		log_debug(&p->log, "cannot request the topology of the node: %s",
			  strerror(-rc));
}

static int find_holder(void *arg, const struct holder_question *q)
{
	unsigned char bytes[HOLDER_BYTES];

	holder_pack(q, bytes);
	return say(arg, HOST_FIND_HOLDER, 0, 0, bytes, sizeof(bytes));
}

static void stays(void *arg)
{
	(void)say(arg, HOST_STAYS, 0, 0, NULL, 0);
}

static void torch_ports_known(void *arg, const uint16_t ports[])
{
	(void)say(arg, HOST_TORCH_PORTS, (uint32_t)ports[0] << 16 | ports[1], 0, NULL, 0);
}

/* Until then the host's messages keep the loop going. */
static void left(void *arg)
{
	struct program *p = arg;

	uv_unref((uv_handle_t *)&p->poll);
}

static const char *tell_netinfo(void *arg)
{
	struct program *p = arg;

	if (!p->netinfo)
		p->netinfo = netinfo_create();
	return p->netinfo;
}

/* ---- from the host ---- */

static void on_found(struct program *p, const struct host_msg *m)
{
	struct sockaddr_storage addr;
	int rc = m->code;

	memset(&addr, 0, sizeof(addr));
	if (!rc && m->len == sizeof(addr))
		memcpy(&addr, m->data, sizeof(addr));
	else if (!rc)
		rc = -EPROTO;
	agent_node_found(p->agent, m->number, rc, &addr);
}

static void on_ended(struct program *p, const struct host_msg *m)
{
	const struct pmi_exit end = {
		.status = m->code,
		.by_launcher = m->len && ((const char *)m->data)[0],
	};

	agent_rank_ended(p->agent, m->number, &end);
}

static void on_topology(struct program *p, const struct host_msg *m)
{
	char path[PATH_MAX];

	if (m->len >= sizeof(path))
		return;
	memcpy(path, m->data, m->len);
	path[m->len] = '\0';
	agent_topology_known(p->agent, m->code || !m->len ? NULL : path);
}

static void take_message(struct program *p, const struct host_msg *m)
{
	switch (m->type) {
	case HOST_FOUND: on_found(p, m); break;
	case HOST_CONNECT_BACK_SENT:
		agent_connect_back_sent(p->agent, m->number, m->code);
		break;
	case HOST_ENDED: on_ended(p, m); break;
	case HOST_TOPOLOGY: on_topology(p, m); break;
	case HOST_HOLDER: agent_holder_found(p->agent, m->code); break;
	case HOST_LEAVE: agent_leave(p->agent); break;
	default: break; /* of a later release */
	}
}

static void on_host(uv_poll_t *poll, int status, int events)
{
	struct program *p = poll->data;
	char room[HOST_MSG_MAX];
	struct host_msg m;
	ssize_t n;

	if (p->out.count) {
		(void)host_out_flush(&p->out, p->host_fd);
		watch_host(p);
	}
	n = recv(p->host_fd, room, sizeof(room), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		uv_poll_stop(poll);
		agent_host_died(p->agent);
	} else if (!host_msg_unpack(&m, room, (size_t)n)) {
		take_message(p, &m);
	}
}

/* ---- what it is told before ---- */

static int map_setup(struct program *p, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || (uint64_t)st.st_size > SETUP_BYTES_MAX)
		return -EPROTO;
	p->len = (size_t)st.st_size;
	p->bytes = mmap(NULL, p->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p->bytes == MAP_FAILED) {
		p->bytes = NULL;
		return -errno;
	}
	return 0;
}

static int read_setup(struct program *p, int fd, const char *build)
{
	int rc = map_setup(p, fd);

	rc = rc ? rc : setup_unpack(&p->setup, p->bytes, p->len);
	if (rc)
		return rc;
	if (getrandom(&p->setup.step.hash_seed, sizeof(uint64_t), 0) !=
	    sizeof(uint64_t))
		return -EIO;
	p->mapping = mapping_create(p->setup.step.layout);
	p->setup.step.mapping = p->mapping;
	if (build)
		p->setup.step.build = build;
	budget_init(&p->budget, p->setup.options.buffer_limit,
		    "Pmi2xBufferLimit in mpi.conf", &p->log);
	p->setup.step.budget = &p->budget;
	p->setup.step.netinfo = tell_netinfo;
	p->setup.step.netinfo_arg = p;
	return 0;
}

/* ---- life ---- */

static int hear_host(struct program *p)
{
	int rc = uv_poll_init(loop_uv(p->loop), &p->poll, p->host_fd);

	if (rc)
		return rc;
	p->polling = true;
	p->poll.data = p;
	watch_host(p);
	return 0;
}

static void cannot_begin(struct program *p, int rc)
{
	char why[256];

	snprintf(why, sizeof(why), "the agent of a node cannot start: %s",
		 rc == -EPROTONOSUPPORT ?
		 "pmi2x-agent and the plugin are from different releases of pmi2x: install both from the same release" :
		 strerror(-rc));
	log_error(&p->log, "%s", why);
	kill_step(p, why);
}

static int serve(struct program *p, const struct agent_fds *fds)
{
	const struct agent_host host = {
		.find_node = find_node,
		.connect_back = connect_back,
		.kill_step = kill_step,
		.ask_rank_end = p->setup.options.exits_known ? ask_rank_end :
							       NULL,
		.want_topology = p->setup.options.topology ? want_topology :
							     NULL,
		.find_holder = find_holder,
		.stays = stays,
		.torch_ports_known = torch_ports_known,
		.left = left,
		.arg = p,
	};
	int rc = agent_open(&p->agent, p->loop, &p->setup, fds, &host, &p->log);

	secret_forget(&p->setup.options.secret);
	if (!p->agent)
		return rc;
	loop_run(p->loop);
	agent_free(p->agent);
	return rc;
}

static void release(struct program *p)
{
	if (p->polling)
		uv_close((uv_handle_t *)&p->poll, NULL);
	loop_destroy(p->loop);
	p->polling = false;
	(void)say(p, HOST_END, 0, 0, NULL, 0);
	(void)host_out_drain(&p->out, p->host_fd);
	host_out_free(&p->out);
	close(p->host_fd);
	if (p->bytes) {
		setup_free(&p->setup);
		munmap(p->bytes, p->len);
	}
	free(p->mapping);
	free(p->netinfo);
}

static void close_fds(const struct agent_fds *fds)
{
	const int all[] = { fds->registration, fds->listener, fds->connect_back,
			    fds->region, fds->pmix, fds->sync, fds->sync_client,
			    fds->torch };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] >= 0)
			close(all[i]);
}

int agent_program(int setup_fd, int host_fd, const struct agent_fds *fds,
		  const char *build, char *netinfo)
{
	struct program p = { .host_fd = host_fd, .netinfo = netinfo };
	int rc;

	p.log = (struct log_hook){ keep_line, &p };
	(void)say(&p, HOST_READY, HOST_VERSION, 0, build,
		  build ? strlen(build) : 0);
	rc = read_setup(&p, setup_fd, build);
	close(setup_fd);
	rc = rc ? rc : loop_create(&p.loop);
	rc = rc ? rc : hear_host(&p);
	rc = rc ? rc : serve(&p, fds);
	if (!p.agent) {
		cannot_begin(&p, rc);
		close_fds(fds);
	}
	release(&p);
	return rc ? 1 : 0;
}
