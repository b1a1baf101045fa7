/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that wait for PMIx until they begin, of a node whose agent dies before it is
 * ready. Agent and PMIx server are this program.
 */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/setup.h"
#include "libconfine/agent_fd.h"
#include "supervisor/supervisor_internal.h"

#define PATIENCE_MS 60000

static void wait_for_the_end(int fd)
{
	char room[256];

	while (recv(fd, room, sizeof(room), 0) > 0)
		;
}

/*
 * The connection of the agent stays: a child of slurmstepd that is not a rank yet has it.
 */
static int die_as_agent(void)
{
	if (!fork())
		wait_for_the_end(AGENT_FD_HOST);
	return 0;
}

static int serve_nobody(void)
{
	wait_for_the_end(AGENT_FD_HOST);
	return 0;
}

/* ---- the supervisor's side ---- */

struct node {
	struct pmi_exit exit;
	bool ended;
	char text[LOG_LINE_MAX * 4];
	char killed[LOG_LINE_MAX];
};

static void keep_line(void *arg, enum log_level level, const char *text)
{
	struct node *n = arg;
	size_t used = strlen(n->text);

	snprintf(n->text + used, sizeof(n->text) - used, "%s\n", text);
}

static int no_address(void *arg, uint32_t node_id, bool may_block,
		      struct sockaddr_storage *out)
{
	return -1;
}

static void keep_why(void *arg, const char *why)
{
	struct node *n = arg;

	snprintf(n->killed, sizeof(n->killed), "%s", why);
}

static bool how_it_ended(void *arg, uint32_t slot, struct pmi_exit *end)
{
	const struct node *n = arg;

	*end = n->exit;
	return n->ended;
}

static struct supervisor *start(struct node *n, const struct pmi_step *step,
			     const struct log_hook *log, const char *dir, int program)
{
	const struct supervisor_host host = {
		.node_address = no_address, .kill_step = keep_why,
		.rank_exit = how_it_ended, .arg = n,
	};
	struct supervisor_options options = {
		.program = { .fd = program, .uid = getuid(), .gid = getgid() },
		.pmix = {
			.when = PMIX_START_EARLY, .program = "/proc/self/exe",
			.dir = dir, .library = "", .gds = "", .collect = "",
		},
		.connect_back_fd = -1,
	};
	struct supervisor *s;

	agent_options_init(&options.agent);
	options.agent.region_size = 0;
	options.agent.drain_ms = PATIENCE_MS;
	assert_int_equal(supervisor_start(&s, step, &options, &host, log), 0);
	return s;
}

/* A rank does not begin. */
static void run(struct node *n)
{
	static const uint32_t ranks[] = { 0 }, count = 1;
	static const uint32_t *const all[] = { ranks };
	static const char *const names[] = { "n0" };
	const struct log_hook log = { keep_line, n };
	struct pmi_step step = { .jobid = "1.0", .build = "b", .node_names = names };
	char place[] = "/tmp/pmi2x-test-XXXXXX", dir[64], stale[64];
	int program = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	struct layout *layout;
	struct supervisor *s;

	assert_int_equal(layout_create(&layout, 1, 1, &count,
				       (const uint32_t **)all), 0);
	step.layout = layout;
	assert_non_null(mkdtemp(place));
	snprintf(dir, sizeof(dir), "%s/" SUPERVISOR_PMIX_DIR_PREFIX "n0", place);
	snprintf(stale, sizeof(stale), "%s/" SUPERVISOR_PMIX_DIR_PREFIX "old", place);
	assert_int_equal(mkdir(stale, 0700), 0);
	s = start(n, &step, &log, dir, program);
	supervisor_rank_comes(s);
	assert_true(supervisor_pmix_wait(s, PATIENCE_MS));
	assert_int_equal(access(stale, F_OK), 0); /* ranks do not wait for its removal */
	assert_true(supervisor_pmix_refused(s));
	assert_int_equal(supervisor_stop(s), 0);
	layout_destroy(layout);
	close(program);
	(void)rmdir(stale); /* it has gone if the server was started */
	assert_int_equal(rmdir(place), 0);
}

TEST(a_dead_agent_ends_the_step_by_name)
{
	struct node n = {};

	NOT_EMULATED("a child that is nobody's");
	run(&n);
	assert_non_null(strstr(n.text, "the agent of node n0 has died"));
	assert_non_null(strstr(n.killed, "the agent of node n0 has died"));
}

/* Slurm kills the agent with the step, of which it ends no rank that has not begun. */
TEST(ranks_of_a_step_that_ends_do_not_begin)
{
	struct node n = { .exit.by_launcher = true };

	NOT_EMULATED("a child that is nobody's");
	run(&n);
	assert_string_equal(n.text, "");
	assert_string_equal(n.killed, "");
}

/* Before, the cgroups of the step are not there, in which pmi2x-pmixd has to be. */
TEST(pmixd_is_not_due_before_a_rank_has_come)
{
	static struct supervisor s = {
		.options.pmix.when = PMIX_START_EARLY,
		.pmix = { .state = PMIX_WAITING, .rank = 3, .listener = 4, .old = 5 },
	};
	struct pollfd fds[PMIX_POLLS];

	pmix_set_fds(&s, fds);
	assert_int_equal(fds[PMIX_POLL_RANK].fd, 3);
	assert_int_equal(fds[PMIX_POLL_LISTENER].fd, -1);
	assert_int_equal(fds[PMIX_POLL_OLD].fd, -1);
	assert_false(pmix_is_due(&s, fds));
	fds[PMIX_POLL_RANK].revents = POLLIN;
	assert_true(pmix_is_due(&s, fds));
	pmix_set_fds(&s, fds);
	assert_int_equal(fds[PMIX_POLL_RANK].fd, -1);
	assert_int_equal(fds[PMIX_POLL_LISTENER].fd, 4);
	assert_int_equal(fds[PMIX_POLL_OLD].fd, 5);
	s.pmix.state = PMIX_STARTED;
	assert_false(pmix_is_due(&s, fds));
}

int main(int argc, char **argv)
{
	if (!strcmp(argv[0], "pmi2x-agent"))
		return die_as_agent();
	if (!strcmp(argv[0], "pmi2x-pmixd"))
		return serve_nobody();
	return unit_run(NULL, NULL, NULL);
}
