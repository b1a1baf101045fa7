/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program pmi2x-topology: topology.h. It gives up its rights as pmi2x-agent does. It
 * gives up the system calls that no hwloc needs: libconfine/foreign.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "helpers/topology/topology.h"
#include "libconfine/confine.h"
#include "libconfine/crash.h"
#include "libconfine/foreign.h"
#include "libconfine/host_msg.h"
#include "pmi2x-build.h"

#define ARGS 6 /* NAME UID GID STEP NODE DIRECTORY [CGROUP ...] */

static const char usage[] =
"pmi2x-topology: the Slurm plugin mpi/pmi2x starts this program; see pmi2x(7)\n"
"usage: pmi2x-topology --export\n"
"Write the topology that ranks of this machine would be given to standard output.\n";

static int say(enum host_type type, const char *text)
{
	const struct host_msg m = {
		.type = type,
		.number = HOST_VERSION,
		.data = text,
		.len = strlen(text),
	};

	(void)host_msg_send_wait(TOPOLOGY_FD_HOST, &m);
	return type == HOST_KILL;
}

/* The user's ranks read it with the user's rights, which this process has by now. */
static int serve(const char *dir)
{
	char why[TOPOLOGY_WHY_MAX];

	say(HOST_READY, PMI2X_BUILD);
	if (access(dir, X_OK)) {
		snprintf(why, sizeof(why), "the job's user cannot enter %.200s: %s",
			 dir, strerror(errno));
		return say(HOST_KILL, why);
	}
	if (topology_export(TOPOLOGY_FD_FILE, why))
		return say(HOST_KILL, why);
	return say(HOST_END, "");
}

static int export_here(void)
{
	char why[TOPOLOGY_WHY_MAX];

	if (!topology_export(STDOUT_FILENO, why))
		return 0;
	fprintf(stderr, "pmi2x-topology: %s\n", why);
	return 1;
}

int main(int argc, char **argv)
{
	char why[CONFINE_WHY_MAX];
	struct confine_options o = { .fds = TOPOLOGY_FD_END };

	prctl(PR_SET_NAME, "pmi2x-topology", 0, 0, 0);
	if (argc == 2 && !strcmp(argv[1], "--export"))
		return export_here();
	if (!confine_arguments(&o, ARGS, argc, argv) ||
	    fcntl(TOPOLOGY_FD_FILE, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(TOPOLOGY_FD_HOST, F_SETFD, FD_CLOEXEC) < 0) {
		fputs(usage, stderr);
		return 2;
	}
	if (confine_begin(&o, why))
		return say(HOST_KILL, why);
	(void)crash_watch();
	if (foreign_restrict(why))
		return say(HOST_KILL, why);
	return serve(argv[ARGS - 1]);
}
