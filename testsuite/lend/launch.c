/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch MPI LIBRARY RANKS MODE PROGRAM ...: starts ranks by mpiexec.MPI as the plugin would,
 * each bound to one core. MPI is mpich or openmpi. Modes:
 *
 *     plain    one thread a rank
 *     on       PMI2X_LEND=on
 *     two      two passive threads a rank, and no core is bound
 *     naps     the same, and waits nap
 *     dlb      one thread a rank, and LIBRARY is preloaded, which is DLB's
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
#define TABLE_PATH "LEND_LAUNCH_TABLE"
#define RANK_ARGS 5 /* behind the program: rank LIBRARY RANKS MODE PROGRAM */
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

/* mpiexec of Open MPI closes the descriptor in its children, but not in itself. */
static void get_table(void)
{
	const char *path = getenv(TABLE_PATH);
	int fd = path && fcntl(TABLE_FD, F_GETFD) < 0 ? open(path, O_RDWR) : TABLE_FD;

	if (fd < 0 || (fd != TABLE_FD && (dup2(fd, TABLE_FD) < 0 || close(fd))))
		perror("the table");
}

static void offer(const char *library, int ranks, int rank, enum lend_mode mode)
{
	const struct lend_place place = {
		.fd = TABLE_FD, .slot = (uint32_t)rank, .ranks = (uint32_t)ranks,
		.rank = (uint32_t)rank, .cores = (uint32_t)get_nprocs_conf(), .factor = 2,
		.mode = mode, .reports = !rank, .explains = true,
	};
	char text[LEND_TEXT_MAX];

	get_table();
	lend_place_write(&place, text);
	setenv(LEND_TABLE_ENV, text, 1);
	setenv("LD_PRELOAD", library, 1);
}

static int rank_number(void)
{
	const char *mpich = getenv("PMI_RANK"), *open_mpi = getenv("OMPI_COMM_WORLD_RANK");

	return mpich ? atoi(mpich) : open_mpi ? atoi(open_mpi) : 0;
}

/* LIBRARY RANKS MODE PROGRAM ... */
static int run_rank(char **args)
{
	int rank = rank_number(), ranks = atoi(args[2]);
	const char *mode = args[3];

	setenv("OMP_NUM_THREADS", "1", 1);
	if (!is(mode, "two") && !is(mode, "naps"))
		bind_to(rank % get_nprocs_conf());
	if (!is(mode, "plain")) {
		setenv("OMP_WAIT_POLICY", "passive", 1);
		setenv("KMP_BLOCKTIME", "0", 1);
	}
	if (is(mode, "dlb"))
		setenv("LD_PRELOAD", args[1], 1);
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
	char path[64];
	int fd = memfd_create("pmi2x-lend", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 ||
	    ftruncate(fd, (off_t)lend_memory_size(ranks, (uint32_t)get_nprocs_conf())) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) || dup2(fd, TABLE_FD) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), TABLE_FD);
	return setenv(TABLE_PATH, path, 1);
}

int main(int argc, char **argv)
{
	char *mpich[] = { "mpiexec.mpich", "-n" };
	char *open_mpi[] = { "mpiexec.openmpi", "--allow-run-as-root", "--bind-to", "none", "-n" };
	char *args[ARGS_MAX] = { NULL }, *self = argv[0];
	size_t n = 0;

	if (argc > RANK_ARGS && is(argv[1], "rank"))
		return run_rank(argv + 1);
	if (argc <= RANK_ARGS || argc > ARGS_MAX / 2)
		return 2;
	come_first();
	if (make_table((uint32_t)atoi(argv[3])))
		return 1;
	if (is(argv[1], "openmpi"))
		memcpy(args, open_mpi, sizeof(open_mpi));
	else
		memcpy(args, mpich, sizeof(mpich));
	while (args[n])
		n++;
	args[n++] = argv[3];
	args[n++] = self;
	args[n++] = "rank";
	memcpy(args + n, argv + 2, (size_t)(argc - 2) * sizeof(*args));
	execvp(args[0], args);
	return 127;
}
