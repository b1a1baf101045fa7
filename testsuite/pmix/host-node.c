/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's side that slurmstepd has: programs, their descriptors and environment. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers/pmixd/pmixd.h"
#include "host.h"

extern char **environ;

static int listen_somewhere(uint16_t *port)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		return -1;
	*port = ntohs(a.sin_port);
	return fd;
}

/* No number that one gets is taken away by giving the others theirs. */
static void give(int fd, int number)
{
	if (fd >= 0 && dup2(fd, number) < 0)
		_exit(126);
	if (fd < 0)
		close(number);
}

static void execute(const struct node *n, const struct host *h, int agent, int host)
{
	const struct options *o = h->options;
	char uid[16], gid[16], port[16];
	char *argv[] = { "pmi2x-pmixd", uid, gid, "test.0",
			 h->names[n->position], (char *)n->dir, (char *)o->library,
			 (char *)o->gds, (char *)o->collect, port, NULL };

	snprintf(uid, sizeof(uid), "%u", (unsigned)getuid());
	snprintf(gid, sizeof(gid), "%u", (unsigned)getgid());
	snprintf(port, sizeof(port), "%u", n->port);
	give(agent, PMIXD_FD_AGENT);
	give(host, PMIXD_FD_HOST);
	give(n->listener, PMIXD_FD_LISTENER);
	give(o->old ? n->old_listener : -1, PMIXD_FD_LISTENER_OLD);
	execve(o->helper, argv, environ);
	_exit(127);
}

/* Above those that pmi2x-pmixd gets. */
static int up(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, 64);

	close(fd);
	return moved;
}

int node_start(struct node *n, const struct host *h, uint32_t position)
{
	int agent[2], host[2], one = 1;
	pid_t pid;

	n->position = position;
	n->listener = up(listen_somewhere(&n->port));
	n->old_listener = up(listen_somewhere(&n->old_port));
	snprintf(n->dir, sizeof(n->dir), "%s/%s", h->options->dir, h->names[position]);
	if (n->listener < 0 || n->old_listener < 0 ||
	    (mkdir(n->dir, 0700) && errno != EEXIST) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, agent) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, host) ||
	    setsockopt(host[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)))
		return -errno;
	for (int i = 0; i < 2; i++) {
		agent[i] = up(agent[i]);
		host[i] = up(host[i]);
	}
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid && fork() == 0)
		execute(n, h, agent[1], host[1]);
	if (!pid) /* a child of no process here, as below slurmstepd */
		_exit(0);
	close(agent[1]);
	close(host[1]);
	link_init(&n->link, agent[0]);
	n->host = host[0];
	waitpid(pid, NULL, 0);
	return 0;
}

bool node_stop(struct node *n)
{
	struct pollfd fd = { .fd = n->host, .events = POLLIN };
	char room[64];
	ssize_t bytes = -1;

	close(n->link.fd);
	link_free(&n->link);
	close(n->listener);
	close(n->old_listener);
	while (n->host >= 0 && bytes && poll(&fd, 1, 20000) > 0)
		bytes = recv(n->host, room, sizeof(room), 0);
	if (n->host >= 0)
		close(n->host);
	return n->host < 0 || !bytes;
}

/* ---- ranks ---- */

static void set(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void set(const char *name, const char *format, ...)
{
	char text[300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	setenv(name, text, 1);
}

static void set_environment(const struct node *n, const struct host *h, uint32_t rank)
{
	static const char *const now[] = { "PMIX_SERVER_URI41", "PMIX_SERVER_URI4" };
	static const char *const old[] = { "PMIX_SERVER_URI3", "PMIX_SERVER_URI21",
					   "PMIX_SERVER_URI2" };

	for (size_t i = 0; i < sizeof(now) / sizeof(*now); i++)
		set(now[i], PMIXD_SERVER_NSPACE ".%u;tcp4://127.0.0.1:%u", n->position,
		    n->port);
	for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++)
		set(old[i], PMIXD_SERVER_NSPACE ".%u;tcp4://127.0.0.1:%u", n->position,
		    h->options->old ? n->old_port : n->port);
	set("PMIX_NAMESPACE", "%s", NSPACE_NAME);
	set("PMIX_RANK", "%u", rank);
	set("PMIX_SECURITY_MODE", "native");
	set("PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC");
	if (!strcmp(h->options->gds, "ds21")) {
		set("PMIX_GDS_MODULE", "ds21,hash");
		set("PMIX_DSTORE_21_BASE_PATH", "%s/" PMIXD_DS21, n->dir);
	} else if (strcmp(h->options->gds, "auto")) {
		set("PMIX_GDS_MODULE", "hash");
	}
	set("PMIX_SERVER_TMPDIR", "%s", n->dir);
	set("PMIX_HOSTNAME", "%s", h->names[n->position]);
	/* By these Open MPI 4 knows that it has been started directly. */
	set("SLURM_JOBID", "1");
	set("SLURM_STEP_ID", "0");
	set("SLURM_NODELIST", "%s", h->names[n->position]);
}

int node_start_rank(const struct node *n, const struct host *h, uint32_t rank,
		    pid_t *pid)
{
	*pid = fork();
	if (*pid)
		return *pid < 0 ? -errno : 0;
	set_environment(n, h, rank);
	execvp(h->options->program[0], h->options->program);
	perror(h->options->program[0]);
	_exit(127);
}

/* ---- cost ---- */

double node_seconds(const struct node *n)
{
	char path[64], text[1024] = "";
	unsigned long user = 0, system = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)n->pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fgets(text, sizeof(text), file) && strrchr(text, ')'))
		sscanf(strrchr(text, ')'),
		       ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
		       &system);
	fclose(file);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

long node_memory(const struct node *n)
{
	char path[64], line[256];
	long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)n->pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		(void)sscanf(line, "VmHWM: %ld", &kib);
	if (file)
		fclose(file);
	return kib;
}
