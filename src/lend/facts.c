/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads waits and progress threads from the environment. */
#include "lend/facts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Variables that start a progress thread in MPICH and in its descendants. */
static const char *const progress_names[] = {
	"MPICH_ASYNC_PROGRESS",
	"MPIR_CVAR_ASYNC_PROGRESS",
	"MPIR_PARAM_ASYNC_PROGRESS",
	"I_MPI_ASYNC_PROGRESS",
};

static bool is_on(const char *text)
{
	static const char *const words[] = { "1", "yes", "on", "true", "enable", "t", "y" };

	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(text, words[i]))
			return true;
	return false;
}

static uint32_t number(const char *text)
{
	long value = text ? strtol(text, NULL, 10) : 0;

	return value > 0 && value < UINT16_MAX ? (uint32_t)value : 0;
}

static uint32_t progress_threads(lend_getenv *get)
{
	uint32_t several = number(get("I_MPI_ASYNC_PROGRESS_THREADS"));

	for (size_t i = 0; i < sizeof(progress_names) / sizeof(progress_names[0]); i++)
		if (is_on(get(progress_names[i])))
			return several ? several : 1;
	return 0;
}

/* OMP_WAIT_POLICY, where nothing of the library's own counts more. */
static void read_policy(struct lend_facts *facts, lend_getenv *get)
{
	const char *policy = get("OMP_WAIT_POLICY");

	facts->wait = LEND_WAIT_DEFAULT;
	if (policy && !strcasecmp(policy, "active"))
		facts->wait = LEND_WAIT_SPINS;
	else if (policy && !strcasecmp(policy, "passive"))
		facts->wait = LEND_WAIT_SLEEPS;
}

static void read_gnu(struct lend_facts *facts, lend_getenv *get)
{
	const char *count = get("GOMP_SPINCOUNT");

	if (count && !strncasecmp(count, "inf", strlen("inf")))
		facts->wait = LEND_WAIT_SPINS;
	else if (count && !strcmp(count, "0"))
		facts->wait = LEND_WAIT_SLEEPS;
}

static void read_llvm(struct lend_facts *facts, lend_getenv *get)
{
	const char *time = get("KMP_BLOCKTIME");

	if (!time)
		return;
	facts->wait_ms = number(time);
	if (!strncasecmp(time, "inf", strlen("inf")))
		facts->wait = LEND_WAIT_SPINS;
	else if (facts->wait_ms)
		facts->wait = LEND_WAIT_MS;
	else
		facts->wait = LEND_WAIT_SLEEPS;
}

void lend_facts_read_env(struct lend_facts *facts, lend_getenv *get)
{
	facts->asked = number(get("SLURM_CPUS_PER_TASK"));
	facts->progress = progress_threads(get);
	facts->mpi_yields = is_on(get("OMPI_MCA_mpi_yield_when_idle"));
	facts->wait_ms = 0;
	read_policy(facts, get);
	if (facts->openmp == LEND_OPENMP_GNU)
		read_gnu(facts, get);
	else if (facts->openmp == LEND_OPENMP_LLVM)
		read_llvm(facts, get);
}
