/* SPDX-License-Identifier: BSD-3-Clause */
/* One node of the fake server: an agent and its ranks. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/setup.h"
#include "fake.h"
#include "libio/registration.h"
#include "libshm/records.h"
#include "libutil/buf.h"
#include "supervisor/supervisor.h"

#define EXIT_NODE_FAILED 125
#define PREPUT_MAX (1u << 20)
#define RANK_TEXT 32 /* bytes of a variable with its number */

/* The abstract unix socket on which a node hears what others tell it. */
static socklen_t tell_address(struct sockaddr_un *sa,
			      const struct fake_step *step, uint32_t node_id)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	n = snprintf(sa->sun_path + 1, sizeof(sa->sun_path) - 1,
		     "pmi2x-fake-%s-%u", step->jobid, node_id);
	return offsetof(struct sockaddr_un, sun_path) + 1 + n;
}

static int tell_listen(const struct fake_step *step, uint32_t node_id)
{
	struct sockaddr_un sa;
	socklen_t len = tell_address(&sa, step, node_id);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&sa, len) || listen(fd, 16)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int connect_back(void *arg, uint32_t node_id, const void *data, size_t len)
{
	const struct fake_step *step = arg;
	uint32_t head[2] = {htonl(getuid()), htonl(len)};
	struct sockaddr_un sa;
	socklen_t sa_len = tell_address(&sa, step, node_id);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sa, sa_len) ||
	    send(fd, head, sizeof(head), MSG_NOSIGNAL) != sizeof(head) ||
	    send(fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

static int node_address(void *arg, uint32_t node_id, bool may_block,
			struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return 0;
}

static void set_number(const char *name, unsigned long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", value);
	setenv(name, text, 1);
}

/* The command of a spawn to which `rank` belongs. */
static const struct spawn_command *command_of(const struct spawn_request *req,
					      uint32_t rank)
{
	const struct spawn_command *c = req->commands;

	while (rank >= c->nprocs) {
		rank -= c->nprocs;
		c++;
	}
	return c;
}

/* Variables that each rank has of its own, and fills in when it is forked. */
struct rank_text {
	char pmi_fd[RANK_TEXT], pmi_rank[RANK_TEXT], slurm_procid[RANK_TEXT];
};

static void put_own(char text[RANK_TEXT], const char *name, long value)
{
	snprintf(text, RANK_TEXT, "%s=%ld", name, value);
}

/*
 * Sets the ranks' environment. Once the supervisor's thread runs, which starts the agent
 * with it, nobody changes it.
 */
static void set_environment(const struct fake_step *step, uint32_t position,
			    struct rank_text *own)
{
	put_own(own->pmi_fd, "PMI_FD", -1);
	put_own(own->pmi_rank, "PMI_RANK", -1);
	put_own(own->slurm_procid, "SLURM_PROCID", -1);
	putenv(own->pmi_fd);
	putenv(own->pmi_rank);
	putenv(own->slurm_procid);
	set_number("PMI_SIZE", layout_ranks(step->layout));
	set_number("SLURM_NODEID", position);
	setenv("PMI_JOBID", step->jobid, 1);
	if (step->options->spawner_jobid)
		setenv("PMI_SPAWNED", "1", 1);
}

/*
 * In the child: become the rank. Does not return. Allocates nothing: the agent's
 * thread may have held an allocator's lock when this process was forked.
 */
static void exec_rank(const struct spawn_command *c, int registration,
		      uint32_t slot, uint32_t rank, struct rank_text *own)
{
	char *argv[SPAWN_ARGS_MAX + 2] = {c->program};
	const char *dir = spawn_info(c, "wdir");
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (registration_of_rank(registration, slot, &fd))
		_exit(EXIT_NODE_FAILED);
	put_own(own->pmi_fd, "PMI_FD", fd);
	put_own(own->pmi_rank, "PMI_RANK", rank);
	put_own(own->slurm_procid, "SLURM_PROCID", rank);
	memcpy(argv + 1, c->argv, c->argc * sizeof(*argv));
	if (dir && chdir(dir))
		_exit(EXIT_NODE_FAILED);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "fake-server: %s: %s\n", argv[0],
		strerror(errno));
	_exit(127);
}

/* Fork the ranks of this node. 0 or -1. */
static int start_ranks(const struct fake_step *step, uint32_t position,
		       int registration, struct rank_text *own)
{
	uint32_t count;
	const uint32_t *ranks = layout_ranks_at(step->layout, position, &count);
	pid_t pid = 0;

	for (uint32_t slot = 0; slot < count && pid >= 0; slot++) {
		const struct spawn_command *c =
			command_of(step->request, ranks[slot]);

		pid = fork();
		if (pid == 0)
			exec_rank(c, registration, slot, ranks[slot], own);
	}
	return pid < 0 ? -1 : 0;
}

/* The largest exit code of the ranks; a signal counts as 128 + its number. */
static int wait_ranks(void)
{
	int worst = 0, status;

	while (wait(&status) > 0 || errno == EINTR) {
		int code = WIFEXITED(status) ? WEXITSTATUS(status)
					     : 128 + WTERMSIG(status);
		if (code > worst)
			worst = code;
	}
	return worst;
}

static int pack_preput(const struct fake_step *step, struct buf *b)
{
	int rc = 0;

	buf_init(b, PREPUT_MAX);
	for (uint32_t i = 0; !rc && i < step->request->npreput; i++) {
		const struct spawn_pair *p = &step->request->preput[i];

		rc = record_append(b, p->key, strlen(p->key), p->value,
				   strlen(p->value));
	}
	return rc;
}

static void describe_step(struct pmi_step *p, const struct fake_step *step,
			  uint32_t node_id, const struct buf *preput)
{
	memset(p, 0, sizeof(*p));
	p->jobid = step->jobid;
	p->layout = step->layout;
	p->position = layout_position(step->layout, node_id);
	p->tree_width = step->options->tree_width;
	p->universe_size = 2 * layout_ranks(step->layout);
	p->spawned = step->options->spawner_jobid != NULL;
	p->spawner_jobid = step->options->spawner_jobid;
	p->app_sizes = p->spawned ? step->app_sizes : NULL;
	p->napps = p->spawned ? step->request->ncommands : 0;
	p->preput = preput->data;
	p->preput_len = preput->len;
	p->build = FAKE_BUILD;
	p->node_names = (const char *const *)step->node_names;
}

/* Beside this program where it is installed, and where both are built. */
static int open_agent(void)
{
	static const char *const places[] = { "", "/../../src/agent" };
	char here[PATH_MAX], path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);
	int fd = -1;

	if (n <= 0)
		return -1;
	here[n] = '\0';
	*strrchr(here, '/') = '\0';
	for (int i = 0; i < 2 && fd < 0; i++) {
		snprintf(path, sizeof(path), "%s%s/pmi2x-agent", here, places[i]);
		fd = open(path, O_PATH | O_CLOEXEC);
	}
	return fd;
}

static void choose_options(struct agent_options *a, const struct fake_step *step,
			   uint32_t node_id)
{
	struct sockaddr_in *launcher = (struct sockaddr_in *)&a->launcher;

	agent_options_init(a);
	a->secret = step->secret;
	a->port_seed = step->port_seed;
	a->debug = step->options->verbose;
	a->port_first = step->options->port_first;
	a->port_last = step->options->port_last;
	a->handshake_ms *= step->options->slow;
	a->connect_back_ms *= step->options->slow;
	a->connect_ms *= step->options->slow;
	a->dead_peer_ms *= step->options->slow;
	launcher->sin_family = AF_INET;
	launcher->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	launcher->sin_port = htons(step->srun_port);
	if (!step->options->shared_memory)
		a->region_size = 0;
	a->connect_back_uid = getuid();
}

int fake_node_run(const struct fake_step *step, uint32_t node_id)
{
	struct supervisor_host host = {
		.node_address = node_address,
		.connect_back = connect_back,
		.arg = (void *)step,
	};
	struct supervisor_options options = {
		.program = { .uid = getuid(), .gid = getgid() },
	};
	struct pmi_step pmi;
	struct supervisor *supervisor;
	struct rank_text own;
	struct buf preput;
	int code = EXIT_NODE_FAILED;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pack_preput(step, &preput))
		goto out;
	describe_step(&pmi, step, node_id, &preput);
	set_environment(step, pmi.position, &own);
	choose_options(&options.agent, step, node_id);
	options.program.fd = open_agent();
	options.connect_back_fd = tell_listen(step, node_id);
	if (step->options->late_node == (int)node_id)
		usleep(step->options->late_ms * 1000);
	if (supervisor_start(&supervisor, &pmi, &options, &host, &step->log))
		goto out;
	if (!start_ranks(step, pmi.position, supervisor_registration_fd(supervisor),
			 &own))
		code = wait_ranks();
	supervisor_stop(supervisor);
out:
	buf_free(&preput);
	return code;
}
