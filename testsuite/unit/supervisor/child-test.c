/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program beside slurmstepd: its end is no child's, which slurmstepd would take for a
 * task's. The program is this one.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libconfine/agent_fd.h"
#include "libio/fd.h"
#include "supervisor/child.h"
#include "supervisor/supervisor.h"

#define PATIENCE_MS 60000
#define ARGS 6 /* NAME UID GID STEP NODE and one more */
#define FD_HOST AGENT_FD_SETUP /* the only one */

/* The program: it says who it is, and ends when it hears the other end's. */
static int say_who(char **argv)
{
	char text[256];
	struct host_msg m = { .type = HOST_LOG, .data = text };

	m.len = (size_t)snprintf(text, sizeof(text), "%s %s %s %s %d %d %d %d",
				 argv[1], argv[3], argv[4], argv[5], getpid(),
				 getppid(), getpgid(0), getsid(0));
	if (host_msg_send(FD_HOST, &m))
		return 1;
	return recv(FD_HOST, text, sizeof(text), 0) == 0 ? 0 : 1;
}

static int start(struct child *c, int file)
{
	int theirs, rc = child_connect(c, &theirs);
	int *const fds[] = { &theirs };
	char *more[] = { (char *)"more", NULL };
	const struct child_program p = {
		.file = file, .name = "program", .uid = 7, .gid = 8,
		.step = "4.2", .node = "n3", .more = more, .fds = fds, .nfds = 1,
	};

	assert_int_equal(rc, 0);
	rc = child_start(c, &p);
	close(theirs);
	return rc;
}

static void hear_who(struct child *c, char *text, size_t size)
{
	char room[HOST_MSG_MAX];
	struct host_msg m;
	int rc;

	do
		rc = child_receive(c, room, &m);
	while (rc == 0);
	assert_int_equal(rc, 1);
	child_text(text, size, &m);
}

TEST(started_program_is_no_child_of_the_caller)
{
	struct child c = CHILD_NONE;
	int pid, parent, group, session, file = open("/proc/self/exe", O_PATH);
	char text[256];

	NOT_EMULATED("a child that is nobody's");
	assert_int_equal(start(&c, file), 0);
	hear_who(&c, text, sizeof(text));
	assert_int_equal(sscanf(text, "7 4.2 n3 more %d %d %d %d", &pid, &parent,
				&group, &session), 4);
	assert_int_not_equal(parent, getpid());
	assert_int_equal(group, pid);
	assert_int_equal(session, getsid(0));
	fd_close(&c.fd);
	child_wait_end(&c, PATIENCE_MS);
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(waitpid(-1, NULL, __WALL), -1);
	child_forget(&c);
	close(file);
}

TEST(started_program_can_be_killed)
{
	struct child c = CHILD_NONE;
	int file = open("/proc/self/exe", O_PATH);
	char text[256], room[HOST_MSG_MAX];
	struct host_msg m;
	int rc;

	NOT_EMULATED("a child that is nobody's");
	assert_int_equal(start(&c, file), 0);
	hear_who(&c, text, sizeof(text));
	child_kill(&c);
	do
		rc = child_receive(&c, room, &m);
	while (rc == 0);
	assert_int_equal(rc, -EPIPE);
	child_forget(&c);
	fd_close(&c.fd);
	close(file);
}

TEST(file_that_is_no_program_is_an_error)
{
	struct child c = CHILD_NONE;
	int file = open("/dev/null", O_PATH);

	NOT_EMULATED("a child that is nobody's");
	assert_int_equal(start(&c, file), -EACCES);
	assert_int_equal(c.pidfd, -1);
	assert_int_equal(waitpid(-1, NULL, __WALL), -1);
	assert_int_equal(errno, ECHILD);
	fd_close(&c.fd);
	close(file);
}

int main(int argc, char **argv)
{
	return argc == ARGS ? say_who(argv) : unit_run(NULL, NULL, NULL);
}
