/* SPDX-License-Identifier: BSD-3-Clause */
/* The topology of a node: what comes of a helper that does well, or anything else. */
#include "unit.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libconfine/host_msg.h"
#include "libio/registration.h"
#include "supervisor/supervisor.h"

#define RANKS 2

struct node {
	bool ranks_ended;
	char dir[32];
	char path[64];
	struct layout *layout;
	struct pmi_step step;
	struct supervisor *supervisor;
	int program;
	int rank; /* PMI_FD of one */
	char text[LOG_LINE_MAX * 4];
	struct log_hook log;
};

/* The answer to the agent, which is a thread. */
static struct {
	sem_t there;
	int32_t code;
	char path[64];
} answered;

static void say(int fd, enum host_type type, uint32_t number)
{
	const struct host_msg m = { .type = type, .number = number };

	assert_int_equal(host_msg_send(fd, &m), 0);
}

static void hear(int fd)
{
	char room[HOST_MSG_MAX];
	struct host_msg m;
	ssize_t n;

	while ((n = recv(fd, room, sizeof(room), 0)) > 0 &&
	       !host_msg_unpack(&m, room, (size_t)n) && m.type != HOST_LEAVE) {
		if (m.type != HOST_TOPOLOGY)
			continue;
		answered.code = m.code;
		memcpy(answered.path, m.data, m.len);
		answered.path[m.len] = '\0';
		sem_post(&answered.there);
	}
}

static int asks(int setup, int fd, const struct agent_fds *fds)
{
	say(fd, HOST_READY, HOST_VERSION);
	say(fd, HOST_WANT_TOPOLOGY, 0);
	hear(fd);
	say(fd, HOST_END, 0);
	close(setup);
	close(fd);
	close(fds->registration);
	return 0;
}

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

static void describe(struct node *n, const char *what)
{
	static const uint32_t ranks[] = { 0, 1 }, count = RANKS;
	static const uint32_t *const all[] = { ranks };
	static const char *const names[] = { "n0" };

	assert_int_equal(layout_create(&n->layout, 1, RANKS, &count,
				       (const uint32_t **)all), 0);
	n->step = (struct pmi_step){
		.jobid = what,
		.layout = n->layout,
		.build = "b",
		.node_names = names,
	};
	n->log = (struct log_hook){ keep_line, n };
	strcpy(n->dir, "/tmp/pmi2x-test-XXXXXX");
	assert_non_null(mkdtemp(n->dir));
	snprintf(n->path, sizeof(n->path), "%s/topology.xml", n->dir);
}

static bool has_ended(void *arg, uint32_t slot, struct pmi_exit *end)
{
	return true;
}

/* A step with a helper that does this, of which a rank speaks. */
static void start(struct node *n, const char *what, enum supervisor_topology when)
{
	const struct supervisor_host host = {
		.node_address = no_address,
		.rank_exit = n->ranks_ended ? has_ended : NULL,
	};
	struct supervisor_options options = {
		.program = { .uid = getuid(), .gid = getgid(), .run = asks },
		.topology = when,
		.topology_program = n->program,
		.topology_path = n->path,
		.connect_back_fd = -1,
	};

	agent_options_init(&options.agent);
	options.agent.region_size = 0;
	assert_true(n->program >= 0);
	assert_int_equal(supervisor_start(&n->supervisor, &n->step, &options, &host,
				       &n->log), 0);
	assert_int_equal(registration_of_rank(
				 supervisor_registration_fd(n->supervisor), 0,
				 &n->rank), 0);
	if (when == TOPOLOGY_START_RANKS && strcmp(what, "hangs"))
		assert_string_equal(supervisor_topology_file(n->supervisor, -1),
				    n->path);
	assert_int_equal(write(n->rank, "x", 1), 1);
}

static void open_node(struct node *n, const char *what)
{
	memset(n, 0, sizeof(*n));
	sem_init(&answered.there, 0, 0);
	n->program = open(OTHER_TOPOLOGY, O_PATH | O_CLOEXEC);
	describe(n, what);
}

static void close_node(struct node *n)
{
	close(n->rank);
	assert_int_equal(supervisor_stop(n->supervisor), 0);
	close(n->program);
	assert_int_equal(rmdir(n->dir), 0); /* nothing is left in it */
	layout_destroy(n->layout);
	sem_destroy(&answered.there);
}

static void run(const char *what, enum supervisor_topology when)
{
	struct node n;
	struct stat st;

	open_node(&n, what);
	start(&n, what, when);
	sem_wait(&answered.there);
	assert_int_equal(answered.code, 0);
	assert_string_equal(answered.path, n.path);
	assert_int_equal(stat(n.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0444);
	assert_int_equal(st.st_size, strlen("<topology/>"));
	assert_string_equal(n.text, "");
	close_node(&n);
}

TEST(a_file_is_there_until_the_step_ends)
{
	NOT_EMULATED("execution of another program for that processor");
	run("well", TOPOLOGY_START_ASKED);
	run("well", TOPOLOGY_START_AGENT);
	run("well", TOPOLOGY_START_RANKS);
}

static void fails(const char *what, const char *path, const char *said)
{
	struct node n;

	open_node(&n, what);
	if (path)
		strcpy(n.path, path);
	start(&n, what, TOPOLOGY_START_ASKED);
	sem_wait(&answered.there);
	assert_int_not_equal(answered.code, 0);
	close_node(&n);
	if (!strstr(n.text, said))
		fail_msg("no \"%s\" in \"%s\"", said, n.text);
}

/* Slurm kills a helper that has just begun with the step. */
TEST(helper_that_dies_with_its_step_is_not_reported)
{
	struct node n;

	NOT_EMULATED("a child that is nobody's");
	open_node(&n, "silent");
	n.ranks_ended = true;
	start(&n, "silent", TOPOLOGY_START_ASKED);
	sem_wait(&answered.there);
	assert_int_not_equal(answered.code, 0);
	close_node(&n);
	assert_string_equal(n.text, "");
}

TEST(helper_that_fails_is_named_with_its_reason)
{
	NOT_EMULATED("execution of another program for that processor");
	fails("silent", NULL, "pmi2x-topology was killed");
	fails("nonsense", NULL, "pmi2x-topology sent an invalid message");
	fails("crashes", NULL, "pmi2x-topology crashed: signal 11");
	fails("refuses", NULL, "ranks of node n0 get no topology file: no hwloc?here; each rank reads");
	fails("empty", NULL, "topology.xml: No data available");
	fails("well", "/nowhere/t.xml", "cannot write /nowhere/t.xml: No such file");
}

TEST(one_that_hangs_ends_with_the_step)
{
	int alive[2];
	struct node n;
	char byte;

	assert_int_equal(pipe(alive), 0); /* inherited by the helper */
	open_node(&n, "hangs");
	start(&n, "hangs", TOPOLOGY_START_ASKED);
	fcntl(alive[0], F_SETFD, FD_CLOEXEC);
	close_node(&n);
	close(alive[1]);
	assert_int_equal(read(alive[0], &byte, 1), 0);
	close(alive[0]);
}

TEST(task_starts_without_a_topology_that_hangs)
{
	struct node n;

	open_node(&n, "hangs");
	start(&n, "hangs", TOPOLOGY_START_RANKS);
	assert_null(supervisor_topology_file(n.supervisor, 10));
	close_node(&n);
}

TEST(step_without_topology_starts_no_helper)
{
	struct node n;

	open_node(&n, "well");
	start(&n, "well", TOPOLOGY_START_NEVER);
	sem_wait(&answered.there);
	assert_int_not_equal(answered.code, 0);
	assert_null(supervisor_topology_file(n.supervisor, -1));
	close_node(&n);
}
