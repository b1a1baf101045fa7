/* SPDX-License-Identifier: BSD-3-Clause */
/* Several agents in one process. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cluster.h"
#include "agent/program.h"
#include "libio/listener.h"
#include "libio/registration.h"

/*
 * Blocks of ports: one that is held, then those of the agents and those beyond. Below
 * what pmi2x cluster and the steps of the fake server take.
 */
#define BLOCKS_FROM 16000
#define BLOCKS 19
#define BLOCK_PORTS (1 + 2 * CLUSTER_PORTS)

#define CLUSTER_FDS_MAX 1024
#define PATIENCE_SECONDS 60 /* limit: the test has failed */

static const char *const names[CLUSTER_NODES_MAX] = {
	"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7",
};

/* ---- the host of the agents ---- */

/* A resolver that may answer never. */
static int look_up(struct cluster *c, uint32_t node)
{
	int rc;

	pthread_mutex_lock(&c->lock);
	c->lookups++;
	pthread_cond_broadcast(&c->changed);
	while (c->stuck[node])
		pthread_cond_wait(&c->changed, &c->lock);
	rc = c->lookups_fail ? -EHOSTUNREACH : 0;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static void loopback(struct sockaddr_storage *out, bool ipv6, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	out->ss_family = ipv6 ? AF_INET6 : AF_INET;
	if (ipv6) {
		in6->sin6_addr = in6addr_loopback;
		in6->sin6_port = htons(port);
	} else {
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		in->sin_port = htons(port);
	}
}

static int node_address(void *arg, uint32_t node, bool may_block,
			struct sockaddr_storage *out)
{
	struct cluster *c = arg;

	if (c->names && !may_block)
		return -EAGAIN;
	if (c->names && look_up(c, node))
		return -EHOSTUNREACH;
	loopback(out, c->ipv6, 0);
	if (c->nowhere)
		((struct sockaddr_in *)out)->sin_addr.s_addr = htonl(0x7f010203);
	return 0;
}

/* The abstract unix socket at which a node hears what others tell it. */
static socklen_t tell_address(const struct cluster *c, uint32_t node,
				     struct sockaddr_un *un)
{
	int n;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	n = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
		     "pmi2x-test-%u-%u", c->port_first, node);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

static int listen_for_tells(const struct cluster *c, uint32_t node)
{
	struct sockaddr_un un;
	socklen_t len = tell_address(c, node, &un);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&un, len), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

/* Passes a message to a socket of another step, as slurmd does. */
static int tell_by_socket(const struct cluster *c, uint32_t node,
			  const void *data, uint32_t len)
{
	struct sockaddr_un un;
	socklen_t un_len = tell_address(c, node, &un);
	uint32_t header[2] = { htonl(getuid()), htonl(len) };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

	if (connect(fd, (struct sockaddr *)&un, un_len) < 0)
		rc = -errno;
	if (!rc && (write(fd, header, 8) != 8 || write(fd, data, len) != len))
		rc = -EIO;
	close(fd);
	return rc;
}

static int connect_back(void *arg, uint32_t node, const void *data, size_t len)
{
	struct cluster *c = arg;
	int rc = -ENOENT;

	pthread_mutex_lock(&c->lock);
	c->tells++;
	pthread_cond_broadcast(&c->changed);
	if (c->tells <= c->tells_refused) {
		rc = -ECONNREFUSED;
	} else if (c->tell_error) {
		rc = c->tell_error;
	} else if (c->agents[node]) {
		rc = tell_by_socket(c, node, data, len);
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

static void kill_step(void *arg, const char *why)
{
	struct cluster *c = arg;

	pthread_mutex_lock(&c->lock);
	snprintf(c->killed, sizeof(c->killed), "%s", why);
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static bool rank_exit(void *arg, uint32_t slot, struct pmi_exit *end)
{
	struct cluster *c = arg;
	bool known;

	pthread_mutex_lock(&c->lock);
	known = !c->exits_after;
	c->exits_after -= !known;
	c->exits_asked++;
	*end = c->exit;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return known;
}

static bool job_is_over(void *arg)
{
	struct cluster *c = arg;

	pthread_mutex_lock(&c->lock);
	c->job_asked++;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return c->job_is_over;
}

static void keep_line(void *arg, enum log_level level, const char *text)
{
	struct cluster *c = arg;
	size_t at;

	if (getenv("CLUSTER_LOG"))
		fprintf(stderr, "[%d] %s\n", level, text);
	pthread_mutex_lock(&c->lock);
	if (level != LOG_LEVEL_DEBUG && strstr(text, "without having finished")) {
		c->unfinished = true;
	} else if (level != LOG_LEVEL_DEBUG) {
		at = strlen(c->text);
		snprintf(c->text + at, sizeof(c->text) - at, "%s\n", text);
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
}

/* ---- the step ---- */

static void make_layout(struct cluster *c)
{
	uint32_t counts[CLUSTER_NODES_MAX], ids[CLUSTER_NODES_MAX];
	const uint32_t *ranks[CLUSTER_NODES_MAX];

	for (uint32_t i = 0; i < c->nodes; i++) {
		counts[i] = 1;
		ids[i] = i;
		ranks[i] = &ids[i];
	}
	assert_int_equal(layout_create(&c->layout, c->nodes, c->nodes, counts,
				       ranks), 0);
}

/* The process that listens on the first port of a block has the block. */
static void take_ports(struct cluster *c)
{
	static const struct sockaddr_storage everywhere;
	uint16_t port = BLOCKS_FROM;

	c->held = -EADDRINUSE;
	for (int i = 0; i < BLOCKS && c->held == -EADDRINUSE; i++) {
		port = BLOCKS_FROM + i * BLOCK_PORTS;
		c->held = listener_socket(&everywhere, port, &port);
	}
	if (c->held < 0)
		fail_msg("no block of ports from %d on: %s", BLOCKS_FROM,
			 strerror(-c->held));
	c->port_first = port + 1;
	c->options.port_first = c->port_first;
	c->options.port_last = c->port_first + CLUSTER_PORTS - 1;
}

void cluster_open(struct cluster *c, uint32_t nodes)
{
	memset(c, 0, sizeof(*c));
	c->nodes = nodes;
	make_layout(c);
	assert_int_equal(secret_create(&c->secret), 0);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->log = (struct log_hook){ keep_line, c };
	agent_options_init(&c->options);
	c->options.secret = c->secret;
	assert_int_equal(port_seed_create(&c->options.port_seed), 0);
	c->options.debug = true;
	c->options.connect_back_uid = getuid();
	take_ports(c);
	c->options.region_size = 1 << 20;
	for (uint32_t i = 0; i < nodes; i++) {
		c->pmi[i] = -1;
		c->steps[i] = (struct pmi_step){
			.jobid = "7.0",
			.layout = c->layout,
			.position = i,
			.tree_width = 2,
			.universe_size = nodes,
			.build = "0.1",
			.node_names = names,
		};
	}
}

struct srun_server *cluster_start_srun(struct cluster *c,
				       const struct srun_server_host *host)
{
	const struct srun_server_options options = {
		.secret = c->secret,
		.jobid = "7.0",
		.build = "0.1",
		.parent_fd = -1,
		.handshake_ms = 60000,
	};
	struct srun_server *server;

	assert_int_equal(srun_server_start(&server, &options, host, &c->log),
			 0);
	loopback(&c->options.launcher, c->ipv6, srun_server_port(server));
	return server;
}

__thread bool cluster_in_agent;

int cluster_run_agent(int setup_fd, int host_fd, const struct agent_fds *fds)
{
	cluster_in_agent = true;
	return agent_program(setup_fd, host_fd, fds, NULL, NULL);
}

struct supervisor *cluster_prepare(struct cluster *c, uint32_t node)
{
	struct supervisor_host host = {
		.node_address = node_address,
		.connect_back = connect_back,
		.kill_step = kill_step,
		.job_is_over = job_is_over,
		.rank_exit = c->exits ? rank_exit : NULL,
		.arg = c,
	};
	struct supervisor_options options = {
		.agent = c->options,
		.program = { .run = c->run ? c->run : cluster_run_agent },
		.connect_back_fd = listen_for_tells(c, node),
		.slurm_ports[0] = { c->slurm_port, c->slurm_port },
	};
	struct supervisor *a = NULL;

	assert_int_equal(supervisor_prepare(&a, &c->steps[node], &options, &host,
					 &c->log), 0);
	pthread_mutex_lock(&c->lock);
	c->agents[node] = a;
	pthread_mutex_unlock(&c->lock);
	return a;
}

void cluster_start(struct cluster *c, uint32_t node)
{
	assert_int_equal(supervisor_run(cluster_prepare(c, node)), 0);
}

void cluster_start_all(struct cluster *c)
{
	for (uint32_t i = 0; i < c->nodes; i++)
		cluster_start(c, i);
}

void cluster_stop(struct cluster *c, uint32_t node)
{
	struct supervisor *a;

	pthread_mutex_lock(&c->lock);
	a = c->agents[node];
	c->agents[node] = NULL;
	pthread_mutex_unlock(&c->lock);
	if (a)
		supervisor_stop(a);
}

static bool is_in_range(const struct cluster *c, const struct sockaddr_in *in)
{
	uint16_t port = ntohs(in->sin_port);

	return in->sin_family == AF_INET && port >= c->port_first &&
	       port < c->port_first + CLUSTER_PORTS;
}

void cluster_cut_links(const struct cluster *c)
{
	for (int fd = 0; fd < CLUSTER_FDS_MAX; fd++) {
		struct sockaddr_in here = { 0 }, there = { 0 };
		socklen_t len = sizeof(here);

		getsockname(fd, (struct sockaddr *)&here, &len);
		len = sizeof(there);
		if (!getpeername(fd, (struct sockaddr *)&there, &len) &&
		    (is_in_range(c, &here) || is_in_range(c, &there)))
			shutdown(fd, SHUT_RDWR);
	}
}

void cluster_stop_all(struct cluster *c)
{
	for (uint32_t i = 0; i < c->nodes; i++)
		rank_close(c, i);
	for (uint32_t i = 0; i < c->nodes; i++)
		cluster_stop(c, i);
}

void cluster_close(struct cluster *c)
{
	cluster_stop_all(c);
	close(c->held);
	layout_destroy(c->layout);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
}

static void end_new(void *cluster)
{
	cluster_close(cluster);
	free(cluster);
}

struct cluster *cluster_new(uint32_t nodes)
{
	struct cluster *c = malloc(sizeof(*c));

	cluster_open(c, nodes);
	return unit_at_end(end_new, c);
}

/* ---- ranks ---- */

void rank_register(struct cluster *c, uint32_t node)
{
	struct timeval patience = { .tv_sec = PATIENCE_SECONDS };
	const struct registration_times times = { 1, 2 };
	int reg = supervisor_registration_fd(c->agents[node]);

	assert_int_equal(registration_of_timed_rank(reg, 0, &times,
						    &c->pmi[node]), 0);
	setsockopt(c->pmi[node], SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
}

void rank_init(struct cluster *c, uint32_t node)
{
	rank_register(c, node);
	rank_say(c, node, "cmd=init pmi_version=1 pmi_subversion=1");
	rank_expect(c, node, "cmd=response_to_init");
}

void rank_close(struct cluster *c, uint32_t node)
{
	if (c->pmi[node] >= 0)
		close(c->pmi[node]);
	c->pmi[node] = -1;
}

void rank_say(struct cluster *c, uint32_t node, const char *line)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "%s\n", line);

	assert_int_equal(send(c->pmi[node], text, n, MSG_NOSIGNAL), n);
}

const char *rank_hear(struct cluster *c, uint32_t node)
{
	static char line[4096];
	size_t n = 0;

	while (n < sizeof(line) - 1) {
		if (recv(c->pmi[node], line + n, 1, 0) <= 0)
			return "(end)";
		if (line[n++] == '\n')
			break;
	}
	line[n] = '\0';
	return line;
}

void rank_expect(struct cluster *c, uint32_t node, const char *part)
{
	const char *line = rank_hear(c, node);

	if (!strstr(line, part))
		fail_msg("rank %u: expected \"%s\", got \"%s\"", node, part,
			 line);
}

void cluster_init_all(struct cluster *c)
{
	for (uint32_t i = 0; i < c->nodes; i++)
		rank_init(c, i);
}

void cluster_barrier(struct cluster *c)
{
	for (uint32_t i = 0; i < c->nodes; i++)
		rank_say(c, i, "cmd=barrier_in");
	for (uint32_t i = 0; i < c->nodes; i++)
		rank_expect(c, i, "cmd=barrier_out");
}

void cluster_start_pmi(struct cluster *c)
{
	cluster_start_all(c);
	cluster_init_all(c);
	cluster_barrier(c);
}

/* ---- what the agents say ---- */

void cluster_await(struct cluster *c, bool (*there)(void *arg), void *arg)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_SECONDS;
	pthread_mutex_lock(&c->lock);
	while (!there(arg) && !rc)
		rc = pthread_cond_timedwait(&c->changed, &c->lock, &until);
	pthread_mutex_unlock(&c->lock);
	if (rc)
		fail_msg("waited in vain; said was \"%s\"", c->text);
}

struct wanted {
	const struct cluster *c;
	const char *part;
};

static bool is_said(void *arg)
{
	const struct wanted *w = arg;

	return strstr(w->c->text, w->part) || strstr(w->c->killed, w->part);
}

void cluster_expect_log(struct cluster *c, const char *part)
{
	struct wanted w = { c, part };

	cluster_await(c, is_said, &w);
}

uint16_t cluster_port(struct cluster *c, uint32_t node)
{
	return step_port(&c->options, c->layout, node, 0);
}
