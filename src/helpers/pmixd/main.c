/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program pmi2x-pmixd: pmixd.h. It gives up its rights as pmi2x-agent does. It gives
 * up the system calls that no libpmix needs: libconfine/foreign.h.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "helpers/pmixd/accept_hook.h"
#include "helpers/pmixd/pmixd.h"
#include "helpers/pmixd/program.h"
#include "libconfine/confine.h"
#include "libconfine/crash.h"
#include "libconfine/foreign.h"
#include "libutil/decimal.h"

static const char usage[] =
"pmi2x-pmixd: the Slurm plugin mpi/pmi2x starts this program; see pmi2x(7)\n";

enum argument { DIR = 5, LIBRARY, GDS, COLLECT, PORT };

static const char *const gds_names[] = {
	[PMIXD_GDS_AUTO] = "auto",
	[PMIXD_GDS_DS21] = "ds21",
	[PMIXD_GDS_HASH] = "hash",
	[PMIXD_GDS_NONE] = "none",
	NULL,
};

static const char *const collect_names[] = {
	[PMIXD_COLLECT_AUTO] = "auto",
	[PMIXD_COLLECT_DEMAND] = "demand",
	[PMIXD_COLLECT_STORE] = "store",
	NULL,
};

/* Which of them it is; negative: none. */
static int which(const char *name, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -1;
}

static bool take_arguments(struct confine_options *c, struct program_options *o,
			   int argc, char **argv)
{
	int gds, collect;
	uint32_t port;

	if (!confine_arguments(c, PMIXD_ARGS, argc, argv) ||
	    !decimal_u32(argv[PORT], 0, UINT16_MAX, &port) ||
	    (gds = which(argv[GDS], gds_names)) < 0 ||
	    (collect = which(argv[COLLECT], collect_names)) < 0)
		return false;
	o->uid = c->uid;
	o->listens = port != 0;
	o->server.shared = !port;
	o->library = argv[LIBRARY];
	o->server.dir = argv[DIR];
	o->server.gds = gds;
	o->server.collect = collect;
	o->server.asks_since = accept_hook_asks_since;
	return true;
}

/* LISTENER_OLD may be absent. */
static bool are_given(bool listens)
{
	int needed = listens ? PMIXD_FD_LISTENER : PMIXD_FD_HOST;

	for (int fd = PMIXD_FD_AGENT; fd < PMIXD_FD_END; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 && fd <= needed)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct program_options o = {};
	struct confine_options c = { .fds = PMIXD_FD_END };
	char why[CONFINE_WHY_MAX];

	prctl(PR_SET_NAME, "pmi2x-pmixd", 0, 0, 0);
	if (!take_arguments(&c, &o, argc, argv) || !are_given(o.listens)) {
		fputs(usage, stderr);
		return 2;
	}
	if (confine_begin(&c, why))
		return program_give_up(why);
	if (geteuid() != c.uid) /* a user that is not root stays */
		o.uid = geteuid();
	(void)crash_watch();
	(void)access(o.library, R_OK); /* mounts its file system: see foreign.h */
	if (foreign_restrict(why))
		return program_give_up(why);
	o.unrestricted = why;
	/* Without the end of libpmix: what it leaves is in its directory. */
	_exit(program_run(&o));
}
