/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A supervisor whose thread does not come back from the host: what it has started is
 * ended all the same. Agent and PMIx server are this program. A wait here ends by the
 * alarm.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers/pmixd/pmixd.h"
#include "libconfine/agent_fd.h"
#include "libconfine/host_msg.h"
#include "supervisor/supervisor.h"

#define PATIENCE_SECONDS 60

/* ---- the programs ---- */

static _Noreturn void stay(void)
{
	alarm(PATIENCE_SECONDS);
	for (;;)
		pause();
}

static int serve_nobody(void)
{
	(void)write(PMIXD_FD_AGENT, "x", 1);
	stay();
}

/* Once the other runs: of another release, which ends the step. */
static int ends_the_step(void)
{
	const struct host_msg m = { .type = HOST_READY, .number = HOST_VERSION + 1 };
	char byte;

	(void)read(AGENT_FD_PMIX, &byte, 1);
	(void)host_msg_send(AGENT_FD_HOST, &m);
	stay();
}

/* ---- the supervisor's side ---- */

static sem_t stuck, never;

static void kill_step(void *arg, const char *why)
{
	sem_post(&stuck);
	while (sem_wait(&never))
		;
}

static void keep_line(void *arg, enum log_level level, const char *text)
{
}

static int no_address(void *arg, uint32_t node_id, bool may_block,
		      struct sockaddr_storage *out)
{
	return -1;
}

static struct supervisor *start(const struct pmi_step *step, const char *dir,
			     const char *pmixd)
{
	static const struct log_hook log = { .line = keep_line };
	const struct supervisor_host host = {
		.node_address = no_address, .kill_step = kill_step,
	};
	struct supervisor_options options = {
		.program = {
			.fd = open("/proc/self/exe", O_PATH | O_CLOEXEC),
			.uid = getuid(), .gid = getgid(),
		},
		.pmix = {
			.when = PMIX_START_EARLY, .program = pmixd,
			.dir = dir, .library = "", .gds = "", .collect = "",
		},
		.connect_back_fd = -1,
	};
	struct supervisor *s;

	agent_options_init(&options.agent);
	options.agent.region_size = 0;
	options.agent.drain_ms = 1;
	assert_int_equal(supervisor_start(&s, step, &options, &host, &log), 0);
	return s;
}

TEST(programs_of_a_stuck_supervisor_end)
{
	static const uint32_t ranks[] = { 0 }, count = 1;
	static const uint32_t *all[] = { ranks };
	static const char *const names[] = { "n0" };
	static char place[] = "/tmp/pmi2x-test-XXXXXX", dir[64], pmixd[64];
	static struct pmi_step step = {
		.jobid = "1.0", .build = "b", .node_names = names,
	};
	static struct layout *layout;
	struct supervisor *s;

	NOT_EMULATED("a child that is nobody's");
	assert_int_equal(layout_create(&layout, 1, 1, &count, all), 0);
	step.layout = layout;
	assert_non_null(mkdtemp(place));
	snprintf(dir, sizeof(dir), "%s/" SUPERVISOR_PMIX_DIR_PREFIX "n0", place);
	snprintf(pmixd, sizeof(pmixd), "%s/pmi2x-pmixd", place);
	assert_int_equal(symlink("/proc/self/exe", pmixd), 0);
	sem_init(&stuck, 0, 0);
	sem_init(&never, 0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	alarm(PATIENCE_SECONDS);
	s = start(&step, dir, pmixd);
	assert_int_equal(unlink(pmixd), 0); /* the file of when the step began is used */
	supervisor_rank_comes(s);
	sem_wait(&stuck);
	assert_int_equal(access(dir, F_OK), 0);
	assert_int_equal(supervisor_stop(s), -EBUSY);
	for (int i = 0; i < 2; i++) {
		int status;

		assert_true(waitpid(-1, &status, 0) > 0);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	assert_int_equal(rmdir(place), 0);
}

int main(int argc, char **argv)
{
	if (!strcmp(argv[0], "pmi2x-agent"))
		return ends_the_step();
	if (!strcmp(argv[0], "pmi2x-pmixd"))
		return serve_nobody();
	return unit_run(NULL, NULL, NULL);
}
