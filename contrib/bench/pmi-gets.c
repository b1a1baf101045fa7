/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times what MPICH does that was built with another PMI library than its own: each
 * rank puts its host's name, and after a barrier gets those of all others.
 *
 *     srun --mpi=TYPE pmi-gets LIBRARY      (a libpmi2.so or libpmi.so)
 *
 * PMI-2 is taken where the library has it. Every value is checked. Rank 0 prints
 *
 *     gets ranks=N median=S max=S cpu=S     (seconds of a rank; cpu: mean)
 *
 * The times are those of the N-1 gets of a rank.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_MAX 1024

static struct {
	char space[256];
	bool two; /* PMI-2 */
	int (*init2)(int *spawned, int *size, int *rank, int *appnum);
	int (*id)(char *to, int size);
	int (*put2)(const char *key, const char *value);
	int (*get2)(const char *job, int source, const char *key, char *value,
		    int size, int *len);
	int (*init1)(int *spawned);
	int (*rank)(int *rank);
	int (*size)(int *size);
	int (*put1)(const char *space, const char *key, const char *value);
	int (*commit)(const char *space);
	int (*get1)(const char *space, const char *key, char *value, int size);
	int (*barrier)(void);
	int (*end)(void);
} pmi;

static void check(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "pmi-gets: %s failed\n", what);
	exit(1);
}

static void *function(void *library, const char *name)
{
	void *f = dlsym(library, name);

	check(f != NULL, name);
	return f;
}

static void load_pmi2(void *library)
{
	pmi.two = true;
	pmi.init2 = function(library, "PMI2_Init");
	pmi.id = function(library, "PMI2_Job_GetId");
	pmi.put2 = function(library, "PMI2_KVS_Put");
	pmi.get2 = function(library, "PMI2_KVS_Get");
	pmi.barrier = function(library, "PMI2_KVS_Fence");
	pmi.end = function(library, "PMI2_Finalize");
}

static void load_pmi1(void *library)
{
	pmi.init1 = function(library, "PMI_Init");
	pmi.rank = function(library, "PMI_Get_rank");
	pmi.size = function(library, "PMI_Get_size");
	pmi.id = function(library, "PMI_KVS_Get_my_name");
	pmi.put1 = function(library, "PMI_KVS_Put");
	pmi.commit = function(library, "PMI_KVS_Commit");
	pmi.get1 = function(library, "PMI_KVS_Get");
	pmi.barrier = function(library, "PMI_Barrier");
	pmi.end = function(library, "PMI_Finalize");
}

static void load(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);

	if (!library)
		fprintf(stderr, "pmi-gets: %s\n", dlerror());
	check(library != NULL, "dlopen");
	if (dlsym(library, "PMI2_Init"))
		load_pmi2(library);
	else
		load_pmi1(library);
}

static void start(int *rank, int *size)
{
	int spawned, appnum, rc;

	if (pmi.two)
		rc = pmi.init2(&spawned, size, rank, &appnum);
	else
		rc = pmi.init1(&spawned) || pmi.rank(rank) || pmi.size(size);
	check(!rc, "init");
	check(!pmi.id(pmi.space, sizeof(pmi.space)), "name of the job");
}

static void put(const char *what, int rank, const char *value)
{
	char key[64];

	snprintf(key, sizeof(key), "%s[%d]", what, rank);
	if (pmi.two)
		check(!pmi.put2(key, value), "put");
	else
		check(!pmi.put1(pmi.space, key, value) &&
		      !pmi.commit(pmi.space), "put");
}

static void get(const char *what, int rank, char value[TEXT_MAX])
{
	char key[64];
	int len;

	snprintf(key, sizeof(key), "%s[%d]", what, rank);
	if (pmi.two)
		check(!pmi.get2(pmi.space, rank, key, value, TEXT_MAX, &len),
		      "get");
	else
		check(!pmi.get1(pmi.space, key, value, TEXT_MAX), "get");
}

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static void get_all(int rank, int size)
{
	char value[TEXT_MAX], want[TEXT_MAX];

	for (int r = 0; r < size; r++) {
		if (r == rank)
			continue;
		get("hostname", r, value);
		snprintf(want, sizeof(want), "host-of-%d", r);
		check(!strcmp(value, want), "comparison of a value");
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(int size)
{
	double *times = calloc(size, sizeof(*times)), cpu = 0;
	char value[TEXT_MAX], *at;

	check(times != NULL, "calloc");
	for (int r = 0; r < size; r++) {
		get("times", r, value);
		times[r] = strtod(value, &at);
		cpu += strtod(at, &at);
	}
	qsort(times, size, sizeof(*times), by_size);
	printf("gets ranks=%d median=%.6f max=%.6f cpu=%.6f\n", size,
	       times[size / 2], times[size - 1], cpu / size);
	free(times);
}

int main(int argc, char **argv)
{
	double begin, cpu;
	char text[TEXT_MAX];
	int rank, size;

	if (argc != 2) {
		fputs("usage: pmi-gets LIBRARY\n", stderr);
		return 2;
	}
	load(argv[1]);
	start(&rank, &size);
	snprintf(text, sizeof(text), "host-of-%d", rank);
	put("hostname", rank, text);
	check(!pmi.barrier(), "barrier");
	begin = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	get_all(rank, size);
	snprintf(text, sizeof(text), "%.6f %.6f", now(CLOCK_MONOTONIC) - begin,
		 now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
	put("times", rank, text);
	check(!pmi.barrier(), "barrier of the times");
	if (rank == 0)
		report(size);
	check(!pmi.barrier() && !pmi.end(), "end");
	return 0;
}
