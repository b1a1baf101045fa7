/* SPDX-License-Identifier: BSD-3-Clause */
/* The calling process asks the kernel for its cores and its OpenMP for its threads. */
#include "lend/own_facts.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lend/cores.h"

#define THREADS_MAX 65536

static const char *get(const char *name)
{
	return getenv(name);
}

static void read_cores(struct lend_cores *cores)
{
	size_t size = CPU_ALLOC_SIZE(LEND_CORES_MAX);
	cpu_set_t *set = CPU_ALLOC(LEND_CORES_MAX);

	if (set && !sched_getaffinity(0, size, set))
		for (uint32_t i = 0; i < LEND_CORES_MAX; i++)
			if (CPU_ISSET_S(i, size, set))
				lend_cores_add(cores, i);
	if (set)
		CPU_FREE(set);
}

enum lend_openmp lend_openmp_of(const void *code)
{
	const char *base;
	Dl_info info;

	if (!dladdr(code, &info) || !info.dli_fname)
		return LEND_OPENMP_OTHER;
	base = strrchr(info.dli_fname, '/');
	base = base ? base + 1 : info.dli_fname;
	if (!strncmp(base, "libgomp", strlen("libgomp")))
		return LEND_OPENMP_GNU;
	if (!strncmp(base, "libomp", strlen("libomp")) ||
	    !strncmp(base, "libiomp", strlen("libiomp")))
		return LEND_OPENMP_LLVM;
	return LEND_OPENMP_OTHER;
}

void lend_own_facts(struct lend_facts *facts, uint32_t rank)
{
	int (*max_threads)(void);
	int threads;

	memset(facts, 0, sizeof(*facts));
	facts->rank = rank;
	facts->threads = 1;
	read_cores(&facts->cores);
	max_threads = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_max_threads");
	if (max_threads) {
		threads = max_threads();
		facts->openmp = lend_openmp_of((const void *)max_threads);
		if (threads > 0 && threads <= THREADS_MAX)
			facts->threads = (uint32_t)threads;
	}
	lend_facts_read_env(facts, get);
}
