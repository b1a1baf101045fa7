/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the node processes of the floor program with their links, and waits. */
#include "floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct launcher {
	const struct floor_run *run;
	int listener;
	int *up;     /* of a node not started yet: its link to its parent, or -1 */
	pid_t *pids; /* of the nodes started */
	uint32_t started;
};

static int open_listener(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(fd, 16)) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* Accept the connection that comes from `port`; strangers are hung up on. */
static int accept_from(int listener, in_port_t port)
{
	for (;;) {
		struct sockaddr_in peer;
		socklen_t len = sizeof(peer);
		int fd = accept4(listener, (struct sockaddr *)&peer, &len,
				 SOCK_CLOEXEC);

		if (fd < 0)
			return -errno;
		if (peer.sin_port == port)
			return fd;
		close(fd);
	}
}

/* A TCP connection over loopback: pair[0] is the parent's end. */
static int make_link(int listener, int pair[2])
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	int on = 1, rc;

	pair[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (pair[1] < 0)
		return -errno;
	if (getsockname(listener, (struct sockaddr *)&addr, &len) ||
	    connect(pair[1], (struct sockaddr *)&addr, len) ||
	    getsockname(pair[1], (struct sockaddr *)&addr, &len)) {
		rc = -errno;
		goto fail;
	}
	pair[0] = accept_from(listener, addr.sin_port);
	if (pair[0] < 0) {
		rc = pair[0];
		goto fail;
	}
	for (int i = 0; i < 2; i++)
		setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return 0;
fail:
	close(pair[1]);
	return rc;
}

/* In the node process: keep what is the node's, and end with the launcher. */
static void become_node(struct launcher *l, struct floor_node *node,
			pid_t launcher)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != launcher)
		_exit(1);
	signal(SIGPIPE, SIG_IGN);
	close(l->listener);
	for (uint32_t i = 0; i < l->run->options.nodes; i++) {
		if (i != node->position && l->up[i] >= 0)
			close(l->up[i]);
	}
	floor_node_main(node);
}

static int link_children(struct launcher *l, struct floor_node *node)
{
	for (uint32_t i = 0; i < node->place.children; i++) {
		int pair[2] = { -1, -1 };
		int rc = make_link(l->listener, pair);

		if (rc) {
			while (i-- > 0)
				close(node->down[i]);
			return rc;
		}
		node->down[i] = pair[0];
		l->up[tree_child(&node->place, i).first] = pair[1];
	}
	return 0;
}

/*
 * Nodes are started in tree order, so that the links that the launcher holds at
 * a time are few: those of the children of the last nodes on one path.
 */
static int start_node(struct launcher *l, uint32_t position)
{
	const struct floor_options *o = &l->run->options;
	struct floor_node node = {
		.run = l->run,
		.position = position,
		.place = tree_place(o->nodes, o->width, position),
		.up = l->up[position],
	};
	pid_t launcher = getpid(), pid;
	int rc;

	node.down = calloc(node.place.children + 1, sizeof(*node.down));
	if (!node.down)
		return -ENOMEM;
	rc = link_children(l, &node);
	if (rc)
		goto free_down;
	pid = fork();
	if (pid == 0)
		become_node(l, &node, launcher);
	if (pid < 0)
		rc = -errno;
	else
		l->pids[l->started++] = pid;
	for (uint32_t i = 0; i < node.place.children; i++)
		close(node.down[i]);
	if (node.up >= 0)
		close(node.up);
	l->up[position] = -1;
free_down:
	free(node.down);
	return rc;
}

/* Kill the node processes; their ranks die with them. */
static void kill_nodes(struct launcher *l)
{
	for (uint32_t i = 0; i < l->started; i++) {
		if (l->pids[i] > 0)
			kill(l->pids[i], SIGKILL);
	}
}

static void forget(struct launcher *l, pid_t pid)
{
	for (uint32_t i = 0; i < l->started; i++) {
		if (l->pids[i] == pid)
			l->pids[i] = 0;
	}
}

/* Reap one node before the deadline (CLOCK_MONOTONIC seconds). */
static int reap_one(struct launcher *l, time_t deadline, const sigset_t *child)
{
	struct timespec now, left;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= deadline)
			return -ETIMEDOUT;
		left = (struct timespec){ .tv_sec = deadline - now.tv_sec };
		sigtimedwait(child, NULL, &left);
	}
	if (pid < 0)
		return -errno;
	forget(l, pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECANCELED;
}

static int wait_for_nodes(struct launcher *l, int rc, const sigset_t *child)
{
	struct timespec now;
	time_t deadline;

	clock_gettime(CLOCK_MONOTONIC, &now);
	deadline = now.tv_sec + l->run->options.timeout;
	for (uint32_t i = 0; i < l->started && rc == 0; i++)
		rc = reap_one(l, deadline, child);
	if (rc) {
		kill_nodes(l);
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
	return rc;
}

int floor_launch(const struct floor_run *run)
{
	uint32_t nodes = run->options.nodes;
	struct launcher l = { .run = run };
	sigset_t child;
	int rc = -ENOMEM;

	/* Blocked, so that sigtimedwait gets it. Its default is to be ignored. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	l.up = malloc(nodes * sizeof(*l.up));
	l.pids = calloc(nodes, sizeof(*l.pids));
	if (!l.up || !l.pids)
		goto free_arrays;
	memset(l.up, 0xff, nodes * sizeof(*l.up)); /* -1 */
	rc = l.listener = open_listener();
	if (rc < 0)
		goto free_arrays;
	rc = 0;
	for (uint32_t i = 0; i < nodes && rc == 0; i++)
		rc = start_node(&l, i);
	close(l.listener);
	rc = wait_for_nodes(&l, rc, &child);
free_arrays:
	free(l.pids);
	free(l.up);
	return rc;
}
