/* SPDX-License-Identifier: BSD-3-Clause */
/* The last words of a process that ends by a fault of its own. */
#include "unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libconfine/agent_fd.h"
#include "libconfine/confine.h"
#include "libconfine/crash.h"
#include "libconfine/filter.h"
#include "libconfine/host_msg.h"

#define SIGNAL_EXIT 128 /* and the signal's number */

/* The message about the end of a child that does this, and how the child ends. */
struct last_words {
	struct host_msg message;
	char room[HOST_MSG_MAX];
	int status;
};

static void run_child(int to_host, void (*fault)(void))
{
	if (dup2(to_host, AGENT_FD_HOST) < 0 || crash_watch())
		_exit(1);
	fault();
	_exit(0);
}

static void hear(struct last_words *w, void (*fault)(void))
{
	int pair[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	if (pid == 0)
		run_child(pair[1], fault);
	close(pair[1]);
	n = recv(pair[0], w->room, sizeof(w->room), 0);
	assert_true(n > 0);
	assert_int_equal(host_msg_unpack(&w->message, w->room, n), 0);
	assert_int_equal(waitpid(pid, &w->status, 0), pid);
	close(pair[0]);
}

static void is_told(void (*fault)(void), int number, int call)
{
	struct last_words w;

	hear(&w, fault);
	assert_int_equal(w.message.type, HOST_CRASHED);
	assert_int_equal(w.message.number, number);
	assert_int_equal(w.message.code, call);
	assert_int_equal(WEXITSTATUS(w.status), SIGNAL_EXIT + number);
}

/* As where ranks take away a page of shared memory that is not there again. */
static void touch_a_lost_page(void)
{
	int fd = memfd_create("crash-test", MFD_CLOEXEC);
	char *page;

	if (fd < 0 || ftruncate(fd, 4096))
		_exit(1);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED || ftruncate(fd, 0))
		_exit(1);
	*(volatile char *)page = 1;
}

TEST(a_lost_page_is_told)
{
	is_told(touch_a_lost_page, SIGBUS, 0);
}

TEST(an_abort_of_a_library_is_told)
{
	is_told(abort, SIGABRT, 0);
}

static void make_a_denied_call(void)
{
	char *const argv[] = { "true", NULL };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    filter_install(crash_denied))
		_exit(1);
	execv("/bin/true", argv);
}

TEST(a_denied_call_is_told_by_number)
{
	if (CONFINE_SANITIZED)
		skip();
	NOT_EMULATED("a filter of system calls");
	is_told(make_a_denied_call, SIGSYS, SYS_execve);
}
