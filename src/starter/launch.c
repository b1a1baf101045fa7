/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting the agent: what it is told goes into a memory file, descriptors get their
 * numbers, and the program is executed as it was when the step began. It forks once
 * more and drops its rights itself, before it reads anything.
 */
#include "starter/starter_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcoll/tree.h"
#include "libio/fd.h"

#define ARGS 5               /* before the cgroups: see the agent's main.c */
#define NUMBER_TEXT 16       /* bytes of a number's text */
#define GROUPS_TEXT_MAX 8192 /* bytes of /proc/self/cgroup */

extern char **environ;

/* ---- what it is told ---- */

static void add_known(const struct starter *s, struct setup *setup,
		      uint32_t position)
{
	uint32_t id = layout_node_id(s->step->layout, position);
	struct known_address *k = &setup->known[setup->nknown];

	if (s->host.node_address(s->host.arg, id, false, &k->addr))
		return; /* the agent asks, and hears why */
	k->node_id = id;
	setup->nknown++;
}

/* Those of its neighbours that need no look-up: it need not ask for them. */
static int find_known(const struct starter *s, struct setup *setup)
{
	uint32_t n = layout_nodes(s->step->layout), k = s->step->tree_width;
	struct tree_place place;

	if (s->options.agent.addresses_told)
		return 0;
	if (k == TREE_WIDTH_AUTO)
		k = tree_width(layout_ranks(s->step->layout));
	place = tree_place(n, k, s->step->position);
	setup->known = calloc(place.children + 1, sizeof(*setup->known));
	if (!setup->known)
		return -ENOMEM;
	if (place.parent != TREE_NONE)
		add_known(s, setup, place.parent);
	for (uint32_t i = 0; i < place.children; i++)
		add_known(s, setup, tree_child(&place, i).first);
	return 0;
}

static int pack_into(int fd, const struct setup *setup)
{
	struct buf b;
	int rc;

	buf_init(&b, SETUP_BYTES_MAX);
	rc = setup_pack(&b, setup);
	rc = rc ? rc : fd_write_all(fd, b.data, b.len);
	if (b.data)
		explicit_bzero(b.data, b.len);
	buf_free(&b);
	return rc;
}

/* A descriptor of it, or a negative errno. */
static int make_setup(const struct starter *s)
{
	struct setup setup = {
		.step = *s->step,
		.options = s->options.agent,
		.port = s->idle.port,
	};
	int rc, fd = memfd_create("pmi2x-setup", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	rc = find_known(s, &setup);
	rc = rc ? rc : pack_into(fd, &setup);
	free(setup.known);
	secret_forget(&setup.options.secret);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* ---- the program ---- */

/* No number that others get is taken away by giving them theirs. */
static int move_up(int *fd)
{
	int up;

	if (*fd < 0 || *fd >= AGENT_FD_END)
		return 0;
	up = fcntl(*fd, F_DUPFD_CLOEXEC, AGENT_FD_END);
	if (up < 0)
		return -errno;
	close(*fd);
	*fd = up;
	return 0;
}

int launch_give(posix_spawn_file_actions_t *actions, int *fd, int number)
{
	int rc = move_up(fd);

	if (rc)
		return rc;
	return *fd < 0 ? -posix_spawn_file_actions_addclose(actions, number) :
		-posix_spawn_file_actions_adddup2(actions, *fd, number);
}

int launch_give_null(posix_spawn_file_actions_t *actions)
{
	int rc = 0;

	for (int fd = 0; fd <= STDERR_FILENO && !rc; fd++)
		rc = -posix_spawn_file_actions_addopen(
			actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
	return rc;
}

static int give_all(struct starter *s, posix_spawn_file_actions_t *actions,
		    int *setup, int *host)
{
	int rc = launch_give_null(actions);

	rc = rc ? rc : launch_give(actions, setup, AGENT_FD_SETUP);
	rc = rc ? rc : launch_give(actions, host, AGENT_FD_HOST);
	rc = rc ? rc : launch_give(actions, &s->idle.ours, AGENT_FD_REGISTRATION);
	rc = rc ? rc : launch_give(actions, &s->idle.listener, AGENT_FD_LISTENER);
	rc = rc ? rc : launch_give(actions, &s->idle.doorbell, AGENT_FD_DOORBELL);
	return rc ? rc : launch_give(actions, &s->idle.region, AGENT_FD_REGION);
}

/* posix_spawn runs no fork handlers. */
int launch_execute(const struct starter *s, int file, const char *name,
		   const posix_spawn_file_actions_t *actions,
		   char *const more[LAUNCH_MORE_MAX + 1], pid_t *pid)
{
	const struct starter_program *p = &s->options.program;
	char path[32], uid[NUMBER_TEXT], gid[NUMBER_TEXT];
	char *argv[ARGS + LAUNCH_MORE_MAX + 1] = {
		(char *)name, uid, gid, (char *)s->step->jobid,
		(char *)starter_node_name(s),
	};

	memcpy(argv + ARGS, more, (LAUNCH_MORE_MAX + 1) * sizeof(*more));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	snprintf(uid, sizeof(uid), "%u", (unsigned)p->uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned)p->gid);
	return -posix_spawn(pid, path, actions, NULL, argv, environ);
}

/*
 * The first process ends when it has forked; who else waits for children may have
 * reaped it.
 */
static int execute(const struct starter *s, int file,
		   const posix_spawn_file_actions_t *actions)
{
	pid_t pid;
	int rc = launch_execute(s, file, "pmi2x-agent", actions, s->leaf.dirs,
				&pid);

	if (!rc)
		(void)waitpid(pid, NULL, 0);
	return rc;
}

/* A step within its job: what follows the point of "<job>.<step>". */
static const char *step_name(const struct starter *s)
{
	const char *point = strrchr(s->step->jobid, '.');

	return point ? point + 1 : s->step->jobid;
}

static int make_leaf(struct starter *s)
{
	char groups[GROUPS_TEXT_MAX];
	int rc, fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, groups, sizeof(groups) - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0 || geteuid()) /* such a slurmd has no cgroups either */
		return 0;
	groups[n] = '\0';
	rc = leaf_find(&s->leaf, groups, LEAF_MOUNT, step_name(s));
	return rc ? rc : leaf_make(&s->leaf);
}

/*
 * For a while slurmstepd has the step's user as its effective one, in all threads.
 * The kernel's call changes this thread only; the C library's would change all.
 */
void launch_become_root(void)
{
	uid_t real, effective, saved;

	if (getresuid(&real, &effective, &saved) || !effective ||
	    (real && saved))
		return;
	(void)syscall(SYS_setresuid, -1, 0, -1);
	(void)syscall(SYS_setresgid, -1, 0, -1);
}

static int spawn_program(struct starter *s, int *setup, int *host)
{
	posix_spawn_file_actions_t actions;
	int rc, file = fcntl(s->options.program.fd, F_DUPFD_CLOEXEC, AGENT_FD_END);

	if (file < 0)
		return -errno;
	launch_become_root();
	rc = make_leaf(s);
	rc = rc ? rc : -posix_spawn_file_actions_init(&actions);
	if (!rc) {
		rc = give_all(s, &actions, setup, host);
		rc = rc ? rc : execute(s, file, &actions);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(file);
	return rc;
}

/* ---- tests: a thread in its place ---- */

struct thread_start {
	int (*run)(int setup_fd, int host_fd, const struct agent_fds *fds);
	int setup, host;
	struct agent_fds fds;
};

static void *run_in_thread(void *arg)
{
	struct thread_start t = *(struct thread_start *)arg;

	free(arg);
	t.run(t.setup, t.host, &t.fds);
	return NULL;
}

/* The thread gets all descriptors. */
static int start_thread(struct starter *s, int *setup, int *host)
{
	struct idle *idle = &s->idle;
	struct thread_start *t = malloc(sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	*t = (struct thread_start){
		s->options.program.run, *setup, *host,
		{ idle->ours, idle->listener, idle->doorbell, idle->region },
	};
	rc = thread_start(&s->agent, run_in_thread, t);
	if (rc) {
		free(t);
		return rc;
	}
	s->has_thread = true;
	*setup = *host = idle->ours = idle->listener = idle->doorbell =
		idle->region = -1;
	return 0;
}

/* ---- both ---- */

static int connect_agent(struct starter *s, int *setup, int *host)
{
	int one = 1, ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	s->service.fd = ends[0];
	*host = ends[1];
	/* The kernel says who the agent is. */
	if (setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) < 0)
		return -errno;
	*setup = make_setup(s);
	return *setup < 0 ? *setup : 0;
}

int launch_agent(struct starter *s)
{
	int setup = -1, host = -1;
	int rc = connect_agent(s, &setup, &host);

	if (!rc)
		rc = s->options.program.run ? start_thread(s, &setup, &host) :
					      spawn_program(s, &setup, &host);
	fd_close(&setup);
	fd_close(&host);
	if (rc)
		return rc;
	idle_hand_over(s);
	rc = idle_pass_ranks(s);
	/* It has ended: the service hears why. */
	return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}
