/* SPDX-License-Identifier: BSD-3-Clause */
/* The launching half of the fake server: what srun and slurmd do in Slurm. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake.h"
#include "libpmi/control.h"
#include "libpmi/mapping.h"
#include "srun/srun_server.h"

#define REQUEST_MAX (8u << 20) /* bytes of a packed spawn request */
#define EXIT_ABORTED 134

/* Data that the callbacks of srun's server share with the launching thread. */
struct launch {
	struct fake_step step;
	struct srun_server *server;
	pid_t *nodes;
	_Atomic int aborted;
};

static void print_line(void *arg, enum log_level level, const char *text)
{
	const struct fake_options *o = arg;

	if (level != LOG_LEVEL_DEBUG || o->verbose)
		fprintf(stderr, "fake-server: %s\n", text);
}

/* ---- the programs to run ---- */

/* One command from the command line, as a spawn request of one command. */
static struct spawn_request *request_from_argv(const struct fake_options *o)
{
	struct spawn_request *r = spawn_new();
	struct spawn_command *c = calloc(1, sizeof(*c));
	uint32_t argc = 0;

	if (!r || !c)
		goto fail;
	while (o->program[1 + argc])
		argc++;
	c->argv = calloc(argc + 1, sizeof(*c->argv));
	c->program = strdup(o->program[0]);
	if (!c->argv || !c->program)
		goto fail;
	for (; c->argc < argc; c->argc++)
		c->argv[c->argc] = strdup(o->program[1 + c->argc]);
	c->nprocs = o->ranks;
	r->commands = c;
	r->ncommands = 1;
	return r;
fail:
	free(c);
	spawn_free(r);
	return NULL;
}

/* The request that a parent's server left in a memfd. */
static struct spawn_request *request_from_fd(int fd)
{
	struct spawn_request *r = NULL;
	struct cursor c;
	struct stat st;
	void *bytes;

	if (fstat(fd, &st) || st.st_size == 0 || st.st_size > REQUEST_MAX)
		return NULL;
	bytes = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return NULL;
	cursor_init(&c, bytes, st.st_size);
	if (spawn_unpack(&c, &r))
		r = NULL;
	munmap(bytes, st.st_size);
	return r;
}

/* ---- spawn: another fake server for the new processes ---- */

static int request_to_fd(const struct spawn_request *request)
{
	int fd = memfd_create("spawn-request", 0);
	struct buf b;

	buf_init(&b, REQUEST_MAX);
	if (fd >= 0 && (spawn_pack(&b, request) ||
			write(fd, b.data, b.len) != (ssize_t)b.len)) {
		close(fd);
		fd = -1;
	}
	buf_free(&b);
	return fd;
}

static void exec_spawn(const struct launch *l, uint32_t serial, int parent_fd,
		       int request_fd)
{
	char parent[16], request[16], nodes[16], spawner[80];
	char *argv[] = {"fake-server", "-N", nodes, "--parent-fd", parent,
			"--request-fd", request, "--spawner", spawner, NULL};

	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* the server's thread blocks all */
	snprintf(parent, sizeof(parent), "%d", parent_fd);
	snprintf(request, sizeof(request), "%d", request_fd);
	snprintf(nodes, sizeof(nodes), "%u", l->step.options->nodes);
	snprintf(spawner, sizeof(spawner), "%s", l->step.jobid);
	execv("/proc/self/exe", argv);
	_exit(127);
}

static pid_t spawn(void *arg, uint32_t serial,
		   const struct spawn_request *request, int *fd)
{
	struct launch *l = arg;
	int request_fd = request_to_fd(request), pair[2];
	pid_t pid;

	if (request_fd < 0)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		close(request_fd);
		return -EMFILE;
	}
	pid = fork();
	if (pid == 0) {
		fcntl(pair[1], F_SETFD, 0);
		exec_spawn(l, serial, pair[1], request_fd);
	}
	close(request_fd);
	close(pair[1]);
	*fd = pair[0];
	if (pid < 0)
		close(pair[0]);
	return pid < 0 ? -EAGAIN : pid;
}

/* ---- the step ---- */

static void kill_nodes(const struct launch *l)
{
	for (uint32_t n = 0; n < l->step.options->nodes; n++)
		if (l->nodes[n] > 0)
			kill(l->nodes[n], SIGKILL);
}

static void aborted(void *arg, uint32_t rank, int code, const char *text)
{
	struct launch *l = arg;

	if (rank == CONTROL_NO_RANK)
		fprintf(stderr, "fake-server: ending the step: %s\n", text);
	else
		fprintf(stderr, "fake-server: rank %u called abort: %s (exit code %d)\n",
			rank, text, code);
	l->aborted = code > 0 && code < 128 ? code : EXIT_ABORTED;
	kill_nodes(l);
}

static void report(void *arg, const char *text)
{
	fprintf(stderr, "fake-server: %s\n", text);
}

static int count_apps(struct fake_step *s)
{
	s->app_sizes = calloc(s->request->ncommands, sizeof(*s->app_sizes));
	if (!s->app_sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->request->ncommands; i++)
		s->app_sizes[i] = s->request->commands[i].nprocs;
	return 0;
}

static int name_nodes(struct fake_step *s)
{
	s->node_names = calloc(s->options->nodes, sizeof(*s->node_names));
	if (!s->node_names)
		return -ENOMEM;
	for (uint32_t n = 0; n < s->options->nodes; n++) {
		char name[16];

		snprintf(name, sizeof(name), "n%u", n + 1);
		s->node_names[n] = strdup(name);
		if (!s->node_names[n])
			return -ENOMEM;
	}
	return 0;
}

static int prepare(struct fake_step *s, struct fake_options *o)
{
	int rc;

	s->options = o;
	s->log = (struct log_hook){print_line, o};
	s->request = o->request_fd >= 0 ? request_from_fd(o->request_fd)
					: request_from_argv(o);
	if (!s->request)
		return -ENOMEM;
	if (o->request_fd >= 0) {
		o->ranks = spawn_procs(s->request);
		if (o->nodes > o->ranks)
			o->nodes = o->ranks;
	}
	snprintf(s->jobid, sizeof(s->jobid), "fake.%d", getpid());
	rc = fake_layout(&s->layout, o);
	if (!rc)
		rc = secret_create(&s->secret);
	if (!rc)
		rc = port_seed_create(&s->port_seed);
	if (!rc)
		rc = count_apps(s);
	if (!rc)
		rc = name_nodes(s);
	if (!rc)
		s->mapping = mapping_create(s->layout);
	return rc;
}

static void release(struct fake_step *s)
{
	for (uint32_t n = 0; s->node_names && n < s->options->nodes; n++)
		free(s->node_names[n]);
	free(s->node_names);
	free(s->app_sizes);
	free(s->mapping);
	layout_destroy(s->layout);
	spawn_free(s->request);
}

/* In a node's process: wait for the port of srun's server, then run. */
static int run_node(struct launch *l, uint32_t node_id, int port_fd)
{
	ssize_t n = read(port_fd, &l->step.srun_port, sizeof(l->step.srun_port));

	close(port_fd);
	return n == sizeof(l->step.srun_port) ? fake_node_run(&l->step, node_id)
					     : 1;
}

/*
 * Fork the nodes while this process has no thread yet; they wait for the server's
 * port at the other end of *port_fd.
 */
static int start_nodes(struct launch *l, int *port_fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	for (uint32_t n = 0; n < l->step.options->nodes; n++) {
		l->nodes[n] = fork();
		if (l->nodes[n] == 0) {
			close(ends[1]);
			_exit(run_node(l, n, ends[0]));
		}
		if (l->nodes[n] < 0)
			break;
	}
	close(ends[0]);
	*port_fd = ends[1];
	return l->nodes[l->step.options->nodes - 1] > 0 ? 0 : -EAGAIN;
}

/* Tell every node where srun's server is. 0 or -EIO. */
static int tell_port(const struct launch *l, int port_fd)
{
	const uint16_t port = l->step.srun_port;

	for (uint32_t n = 0; n < l->step.options->nodes; n++)
		if (write(port_fd, &port, sizeof(port)) != sizeof(port))
			return -EIO;
	return 0;
}

static int wait_nodes(const struct launch *l)
{
	int worst = 0, status;

	for (uint32_t n = 0; n < l->step.options->nodes; n++) {
		if (l->nodes[n] <= 0 || waitpid(l->nodes[n], &status, 0) < 0)
			continue;
		int code = WIFEXITED(status) ? WEXITSTATUS(status)
					     : 128 + WTERMSIG(status);
		if (code > worst)
			worst = code;
	}
	return l->aborted ? l->aborted : worst;
}

static int start_srun_server(struct launch *l)
{
	const struct fake_options *o = l->step.options;
	struct srun_server_host host = {
		.spawn = spawn,
		.abort = aborted,
		.report = report,
		.arg = l,
	};
	struct srun_server_options options = {
		.secret = l->step.secret,
		.port_seed = l->step.port_seed,
		.jobid = l->step.jobid,
		.build = FAKE_BUILD,
		.port_first = o->port_first,
		.port_last = o->port_last,
		.parent_fd = o->parent_fd,
		.handshake_ms = 5000 * o->slow,
	};
	int rc = srun_server_start(&l->server, &options, &host, &l->step.log);

	if (!rc)
		l->step.srun_port = srun_server_port(l->server);
	return rc;
}

/* Nodes, then srun's server, then the ranks. 0 or a negative errno. */
static int start(struct launch *l)
{
	int port_fd = -1;
	int rc = start_nodes(l, &port_fd);

	if (!rc)
		rc = start_srun_server(l);
	if (!rc)
		rc = tell_port(l, port_fd);
	if (port_fd >= 0)
		close(port_fd); /* nodes without a port end */
	return rc;
}

int fake_launch(const struct fake_options *given)
{
	struct fake_options o = *given;
	struct launch l = {.aborted = 0};
	int code = 1, rc;

	rc = prepare(&l.step, &o);
	if (!rc)
		l.nodes = calloc(o.nodes, sizeof(*l.nodes));
	if (!rc && !l.nodes)
		rc = -ENOMEM;
	rc = rc ? rc : start(&l);
	if (rc)
		fprintf(stderr, "fake-server: cannot start: %s\n",
			strerror(-rc));
	if (l.nodes)
		code = wait_nodes(&l);
	if (l.server)
		srun_server_stop(l.server, UINT32_MAX);
	free(l.nodes);
	release(&l.step);
	return rc ? 1 : code;
}
