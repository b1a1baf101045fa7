/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch LIBRARY RANKS MODE PROGRAM ...: starts ranks by mpiexec.mpich as the plugin would,
 * each bound to one core. Modes:
 *
 *     plain    one thread a rank
 *     on       PMI2X_LEND=on
 *     two      two passive threads a rank, and no core is bound
 *     naps     the same, and waits nap
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "lend/table.h"

#define TABLE_FD 61
#define HIGHEST (-20)
#define ARGS_MAX 64

static int is(const char *mode, const char *name)
{
	return !strcmp(mode, name);
}

/* The other processes of the machine come behind the ranks, where that is allowed. */
static void come_first(void)
{
	int fd = open("/proc/self/autogroup", O_WRONLY);

	if (fd >= 0) {
		if (write(fd, "-20", 3) < 0)
			perror("autogroup");
		close(fd);
	}
	if (setpriority(PRIO_PROCESS, 0, HIGHEST))
		perror("setpriority");
}

static void bind_to(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

static void offer(const char *library, int ranks, int rank, enum lend_mode mode)
{
	const struct lend_place place = {
		.fd = TABLE_FD, .slot = (uint32_t)rank, .ranks = (uint32_t)ranks,
		.rank = (uint32_t)rank, .cores = (uint32_t)get_nprocs_conf(), .factor = 2,
		.mode = mode, .reports = !rank, .explains = true,
	};
	char text[LEND_TEXT_MAX];

	lend_place_write(&place, text);
	setenv(LEND_TABLE_ENV, text, 1);
	setenv("LD_PRELOAD", library, 1);
}

/* rank LIBRARY RANKS MODE PROGRAM ... */
static int run_rank(char **args)
{
	const char *name = getenv("PMI_RANK"), *mode = args[3];
	int rank = name ? atoi(name) : 0, ranks = atoi(args[2]);

	setenv("OMP_NUM_THREADS", "1", 1);
	if (is(mode, "plain") || is(mode, "on"))
		bind_to(rank % get_nprocs_conf());
	if (!is(mode, "plain"))
		setenv("OMP_WAIT_POLICY", "passive", 1);
	if (is(mode, "two") || is(mode, "naps"))
		setenv("OMP_NUM_THREADS", "2", 1);
	if (is(mode, "on"))
		offer(args[1], ranks, rank, LEND_CORES);
	if (is(mode, "naps"))
		offer(args[1], ranks, rank, LEND_NAPS);
	execvp(args[4], args + 4);
	return 127;
}

static int make_table(uint32_t ranks)
{
	int fd = memfd_create("pmi2x-lend", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 ||
	    ftruncate(fd, (off_t)lend_memory_size(ranks, (uint32_t)get_nprocs_conf())) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) || dup2(fd, TABLE_FD) < 0)
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	char *args[ARGS_MAX] = { "mpiexec.mpich", "-n", argc > 2 ? argv[2] : NULL, argv[0],
				 "rank" };

	if (argc < 5 || argc > ARGS_MAX - 5)
		return 2;
	if (is(argv[1], "rank"))
		return run_rank(argv + 1);
	come_first();
	if (make_table((uint32_t)atoi(argv[2])))
		return 1;
	memcpy(args + 5, argv + 1, (size_t)argc * sizeof(*args));
	execvp(args[0], args);
	return 127;
}
