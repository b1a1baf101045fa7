/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processor time that the ranks of a node need for its topology: each by itself, against
 * one pmi2x-topology and its file, which each reads, or which one reads into memory that
 * all map, as libpmix 5 does for its clients. The machine is a tree of files, as in
 * hwloc's tests/hwloc/linux. Only children call hwloc: each has to begin it, as a rank does.
 */
#include <fcntl.h>
#include <hwloc.h>
#include <hwloc/shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 64
#define TRIALS 99                        /* most */
#define ADDRESS ((void *)0x300000000000) /* where all map it: free in a new process */
#define LEVELS 16

static char place[] = "/tmp/topology-cost.XXXXXX";
static char xml[sizeof(place) + 16], memory[sizeof(place) + 16];

struct levels {
	unsigned int objects[LEVELS];
};

static void check(int bad, const char *what)
{
	if (!bad)
		return;
	perror(what);
	_exit(1);
}

/* ---- what a rank does ---- */

static hwloc_topology_t load(const char *file)
{
	hwloc_topology_t t;

	check(hwloc_topology_init(&t), "hwloc_topology_init");
	if (file) {
		check(hwloc_topology_set_xml(t, file), "hwloc_topology_set_xml");
		hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
	}
	hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
	check(hwloc_topology_load(t), "hwloc_topology_load");
	return t;
}

static void look_at(hwloc_topology_t t, struct levels *out)
{
	*out = (struct levels){};
	for (int i = 0; i < hwloc_topology_get_depth(t) && i < LEVELS; i++)
		out->objects[i] = hwloc_get_nbobjs_by_depth(t, i);
	hwloc_topology_destroy(t);
}

static void by_itself(struct levels *out)
{
	look_at(load(NULL), out);
}

static void from_file(struct levels *out)
{
	look_at(load(xml), out);
}

static void from_memory(struct levels *out)
{
	hwloc_topology_t t;
	struct stat status;
	int fd = open(memory, O_RDONLY);

	check(fd < 0 || fstat(fd, &status), memory);
	check(hwloc_shmem_topology_adopt(&t, fd, 0, ADDRESS, (size_t)status.st_size, 0),
	      "hwloc_shmem_topology_adopt");
	look_at(t, out);
}

/* What pmi2x-pmixd's libpmix does for all. */
static void share(struct levels *out)
{
	hwloc_topology_t t = load(xml);
	int fd = open(memory, O_RDWR | O_CREAT | O_TRUNC, 0600);
	size_t len;

	check(hwloc_shmem_topology_get_length(t, &len, 0), "hwloc_shmem_topology_get_length");
	check(fd < 0 || ftruncate(fd, (off_t)len), memory);
	check(hwloc_shmem_topology_write(t, fd, 0, ADDRESS, len, 0),
	      "hwloc_shmem_topology_write");
	look_at(t, out);
}

static void nothing(struct levels *out)
{
	*out = (struct levels){};
}

/* ---- and what it takes ---- */

static double children(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Seconds of so many at once, which must all see the same as `expected` (NULL: anything). */
static double run(int ranks, void (*rank)(struct levels *), const struct levels *expected)
{
	double before = children();
	int status;

	for (int i = 0; i < ranks; i++) {
		struct levels seen;
		pid_t pid = fork();

		check(pid < 0, "fork");
		if (pid)
			continue;
		rank(&seen);
		_exit(expected && memcmp(&seen, expected, sizeof(seen)) ? 3 : 0);
	}
	while (wait(&status) > 0) {
		if (!status)
			continue;
		fputs("topology-cost: a rank failed, or sees another machine\n", stderr);
		exit(1);
	}
	return children() - before;
}

/* Less what it takes to be there. */
static double cost(int ranks, void (*rank)(struct levels *), const struct levels *expected)
{
	return run(ranks, rank, expected) - run(ranks, nothing, NULL);
}

static double export(const char *helper)
{
	double before = children();
	int fd, status;
	pid_t pid = fork();

	check(pid < 0, "fork");
	if (!pid) {
		fd = open(xml, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		check(fd < 0 || dup2(fd, STDOUT_FILENO) < 0, xml);
		execl(helper, helper, "--export", NULL);
		check(1, helper);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		exit(1);
	return children() - before;
}

static struct levels levels_of_machine(void)
{
	struct levels levels = {};
	int fds[2];
	pid_t pid;

	check(pipe(fds), "pipe");
	pid = fork();
	check(pid < 0, "fork");
	if (!pid) {
		by_itself(&levels);
		_exit(write(fds[1], &levels, sizeof(levels)) != sizeof(levels));
	}
	check(read(fds[0], &levels, sizeof(levels)) != sizeof(levels), "a rank");
	waitpid(pid, NULL, 0);
	return levels;
}

/* ---- the report ---- */

enum { OWN, ONCE, READ, SHARE, MAPPED, KINDS };

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *of, int count)
{
	qsort(of, (size_t)count, sizeof(*of), by_value);
	return of[count / 2];
}

static void measure(const char *helper, const char *tree, int trials)
{
	static double took[KINDS][TRIALS];
	struct levels levels;
	double m[KINDS];

	setenv("HWLOC_FSROOT", tree, 1);
	levels = levels_of_machine();
	for (int i = 0; i < trials; i++) {
		setenv("HWLOC_FSROOT", tree, 1);
		took[OWN][i] = cost(RANKS, by_itself, &levels);
		took[ONCE][i] = export(helper);
		unsetenv("HWLOC_FSROOT");
		took[READ][i] = cost(RANKS, from_file, &levels);
		took[SHARE][i] = cost(1, share, &levels);
		took[MAPPED][i] = cost(RANKS, from_memory, &levels);
	}
	for (int k = 0; k < KINDS; k++)
		m[k] = median(took[k], trials);
	printf("%d ranks, medians of %d: each by itself %.3f s; once %.3f s and read "
	       "%.3f s: %.1f times; shared %.3f s and mapped %.3f s: %.1f times\n",
	       RANKS, trials, m[OWN], m[ONCE], m[READ], m[OWN] / (m[ONCE] + m[READ]),
	       m[SHARE], m[MAPPED], m[OWN] / (m[ONCE] + m[SHARE] + m[MAPPED]));
}

/* Children, which end by _exit, leave it. */
static void remove_place(void)
{
	unlink(xml);
	unlink(memory);
	rmdir(place);
}

int main(int argc, char **argv)
{
	int trials = argc > 3 ? atoi(argv[3]) : 7;
	char *tree = argc > 2 ? realpath(argv[2], NULL) : NULL;

	if (argc < 3 || argc > 4 || trials < 1 || trials > TRIALS) {
		fputs("usage: topology-cost PMI2X-TOPOLOGY TREE [TRIALS]\n", stderr);
		return 2;
	}
	check(!tree, argv[2]);
	check(!mkdtemp(place), place);
	atexit(remove_place);
	sprintf(xml, "%s/xml", place);
	sprintf(memory, "%s/memory", place);
	measure(argv[1], tree, trials);
	free(tree);
	return 0;
}
