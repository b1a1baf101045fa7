/* SPDX-License-Identifier: BSD-3-Clause */
/* What the filter lets an agent do, and what happens to all else. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/stopped.h"
#include "confined.h"
#include "libio/loop.h"
#include "libio/secret.h"
#include "libshm/region.h"
#include "libshm/region_memory.h"

/* ---- the filter ---- */

static void try_execve(void)
{
	char *const argv[] = { "true", NULL };

	execv("/bin/true", argv);
}

static void try_ptrace(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static void try_kill(void)
{
	kill(getpid(), 0);
}

static void try_tgkill(void)
{
	syscall(SYS_tgkill, 1, 1, 0);
}

static void try_setuid(void)
{
	syscall(SYS_setresuid, -1, -1, -1);
}

static void try_fork(void)
{
	syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void try_code(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	     0);
}

static void try_dumpable(void)
{
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void try_namespace(void)
{
	unshare(CLONE_NEWUSER);
}

static const struct {
	void (*attempt)(void);
	int number;
} forbidden[] = {
	{ try_execve, SYS_execve },     { try_ptrace, SYS_ptrace },
	{ try_kill, SYS_kill },         { try_tgkill, SYS_tgkill },
	{ try_setuid, SYS_setresuid },  { try_fork, SYS_clone },
	{ try_code, SYS_mmap },         { try_dumpable, SYS_prctl },
	{ try_namespace, SYS_unshare },
};

static void what_is_forbidden_ends_it_by_number(void **state)
{
	struct confined c;

	if (CONFINE_SANITIZED)
		skip();
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		assert_int_equal(
			confined_start(&c, &as_nobody, NULL, forbidden[i].attempt).rc, 0);
		assert_int_equal(confined_hear(&c).rc, DENIED + forbidden[i].number);
		assert_int_equal(confined_end(&c), 0);
	}
}

/* 0, or the number of the first that was not refused with its error. */
static int first_not_refused(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	int words[32] = { 0 };

	if (open("/dev/null", O_RDWR) >= 0 || errno != EACCES)
		return 1;
	if (open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0 || errno != EACCES)
		return 2;
	if (socket(AF_PACKET, SOCK_RAW, 0) >= 0 || errno != EAFNOSUPPORT)
		return 3;
	if (ioctl(HOLD, FIONREAD, words) >= 0 || errno != ENOTTY)
		return 4;
#ifdef SYS_io_uring_setup
	if (syscall(SYS_io_uring_setup, 1, words) >= 0 || errno != ENOSYS)
		return 5;
#endif
#ifdef SYS_clone3
	if (syscall(SYS_clone3, &args, sizeof(args)) >= 0 || errno != ENOSYS)
		return 6;
#endif
	return 0;
}

static void try_refused(void)
{
	confined_report(first_not_refused(), "");
}

static void what_libraries_try_is_refused(void **state)
{
	struct confined c;

	if (CONFINE_SANITIZED)
		skip();
	assert_int_equal(confined_start(&c, &as_nobody, NULL, try_refused).rc, 0);
	assert_int_equal(confined_hear(&c).rc, 0);
	confined_end(&c);
}

static void abort_it(void)
{
	abort();
}

/* Also with a filter: by its signal, not by the filter's. */
static void an_abort_ends_it(void **state)
{
	struct confined c;

	assert_int_equal(confined_start(&c, &as_nobody, NULL, abort_it).rc, 0);
	assert_int_equal(confined_hear(&c).rc, -EPIPE);
	assert_int_equal(WTERMSIG(confined_end(&c)), SIGABRT);
}

/* ---- what an agent does, nobody, not dumpable and filtered ---- */

static void end_loop(uv_async_t *end)
{
	uv_close((uv_handle_t *)end, NULL);
}

/* A loop in a thread of its own, which hears and ends. */
static int use_loop(void)
{
	struct loop *l;
	uv_async_t end;
	int rc = loop_create(&l);

	if (rc)
		return rc;
	rc = uv_async_init(loop_uv(l), &end, end_loop);
	if (!rc)
		rc = loop_start(l);
	if (rc)
		return rc;
	uv_async_send(&end);
	loop_join(l);
	loop_destroy(l);
	return rc;
}

/* Its object is opened again through /proc/self, read-only. */
static int use_region(void)
{
	struct region_memory m;
	int object = region_object_create(), rc;

	if (object < 0)
		return object;
	rc = region_memory_create(&m, object, 1 << 20);
	if (rc)
		return rc;
	region_memory_destroy(&m);
	return 0;
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, 1024);
}

/* So large that the C library asks for the machine's memory. */
static int use_memory(void)
{
	size_t n = 4096;
	char *all = calloc(n, 1024);

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		all[i * 1024] = (char)(n - i);
	qsort(all, n, 1024, compare);
	free(all);
	return 0;
}

static void do_work(void)
{
	struct secret secret;
	int rc = use_loop();

	if (!rc)
		rc = use_region();
	if (!rc)
		rc = use_memory();
	if (!rc)
		rc = secret_create(&secret);
	if (!rc && process_is_stopped(getpid()))
		rc = -ECANCELED;
	confined_report(rc, "");
}

static void an_agents_work_is_allowed(void **state)
{
	struct confined c;

	assert_int_equal(confined_start(&c, &as_nobody, NULL, do_work).rc, 0);
	assert_int_equal(confined_hear(&c).rc, 0);
	assert_string_equal(confined_hear(&c).why, "back");
	assert_int_equal(confined_end(&c), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_forbidden_ends_it_by_number),
		cmocka_unit_test(what_libraries_try_is_refused),
		cmocka_unit_test(an_abort_ends_it),
		cmocka_unit_test(an_agents_work_is_allowed),
	};
	int rc = confined_skip();

	return rc ? rc :
		    cmocka_run_group_tests_name("filter", tests, NULL, NULL);
}
