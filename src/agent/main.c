/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program pmi2x-agent. Its parent (src/supervisor) passes its descriptors, its user and
 * its cgroups. Users do not start it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/netinfo.h"
#include "agent/program.h"
#include "libconfine/agent_fd.h"
#include "libconfine/confine.h"
#include "libconfine/crash.h"
#include "libconfine/filter.h"
#include "libconfine/host_msg.h"
#include "libio/protocol.h"
#include "libutil/log.h"
#include "pmi2x-build.h"

/* NAME UID GID STEP NODE [CGROUP ...]; step and node are for who looks at processes. */
#define ARGS 5

static const char usage[] =
"pmi2x-agent: the Slurm plugin mpi/pmi2x starts this program; see pmi2x(7)\n";

static int given(int fd)
{
	return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -1 : fd;
}

static void tell(enum host_type type, const char *text)
{
	const struct host_msg m = {
		.type = type,
		.number = LOG_LEVEL_DEBUG, /* of a line of the log */
		.data = text,
		.len = strlen(text),
	};

	(void)host_msg_send_wait(AGENT_FD_HOST, &m);
}

/* Nothing has been read, but rights may be left: no more than this. */
static int cannot_confine(const char *why)
{
	tell(HOST_KILL, why);
	return 1;
}

/* The filter allows no netlink socket, so the host's interfaces are listed before. */
static int confine(const struct confine_options *o, char **netinfo)
{
	char why[CONFINE_WHY_MAX];
	int rc = confine_begin(o, why);

	if (rc)
		return cannot_confine(why);
	*netinfo = netinfo_create();
	rc = crash_watch();
	rc = rc ? rc : filter_install(crash_denied);
	if (rc && rc != -ENOSYS)
		return cannot_confine("the agent cannot restrict its system calls");
	if (rc)
		tell(HOST_LOG, "the agent's system calls are not restricted: this kernel, processor or build has no seccomp filter");
	return 0;
}

int main(int argc, char **argv)
{
	const struct agent_fds fds = {
		.registration = given(AGENT_FD_REGISTRATION),
		.listener = given(AGENT_FD_LISTENER),
		.connect_back = given(AGENT_FD_CONNECT_BACK),
		.region = given(AGENT_FD_REGION),
		.pmix = given(AGENT_FD_PMIX),
		.sync = given(AGENT_FD_SYNC),
		.sync_client = given(AGENT_FD_SYNC_CLIENT),
		.torch = given(AGENT_FD_TORCH),
	};
	struct confine_options o = { .fds = AGENT_FD_END };
	char *netinfo;

	/* A file that is executed by its descriptor would have that number as its name. */
	prctl(PR_SET_NAME, "pmi2x-agent", 0, 0, 0);
	if (!confine_arguments(&o, ARGS, argc, argv) || given(AGENT_FD_SETUP) < 0 ||
	    given(AGENT_FD_HOST) < 0) {
		fprintf(stderr, "%s%s\n", usage, protocol_mark);
		return 2;
	}
	return confine(&o, &netinfo) ||
	       agent_program(AGENT_FD_SETUP, AGENT_FD_HOST, &fds, PMI2X_BUILD, netinfo);
}
