/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits and progress threads, read from the environment. */
#include "unit.h"

#include <stdbool.h>

#include "lend/facts.h"

static const char *const *environment; /* NAME, VALUE, ..., NULL */

static const char *get(const char *name)
{
	for (const char *const *at = environment; *at; at += 2)
		if (!strcmp(at[0], name))
			return at[1];
	return NULL;
}

#define ENV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct lend_facts facts_in(enum lend_openmp openmp, const char *const *env)
{
	struct lend_facts f = { .openmp = openmp };

	environment = env;
	lend_facts_read_env(&f, get);
	return f;
}

TEST(policy_of_openmp_is_read)
{
	assert_int_equal(facts_in(LEND_OPENMP_GNU, ENV("OMP_WAIT_POLICY", "ACTIVE")).wait,
			 LEND_WAIT_SPINS);
	assert_int_equal(facts_in(LEND_OPENMP_LLVM, ENV("OMP_WAIT_POLICY", "passive")).wait,
			 LEND_WAIT_SLEEPS);
	assert_int_equal(facts_in(LEND_OPENMP_GNU, ENV("A", "B")).wait, LEND_WAIT_DEFAULT);
}

TEST(variables_of_the_library_come_before_the_policy)
{
	struct lend_facts f;

	f = facts_in(LEND_OPENMP_LLVM, ENV("OMP_WAIT_POLICY", "active", "KMP_BLOCKTIME", "0"));
	assert_int_equal(f.wait, LEND_WAIT_SLEEPS);
	f = facts_in(LEND_OPENMP_LLVM, ENV("KMP_BLOCKTIME", "50"));
	assert_int_equal(f.wait, LEND_WAIT_MS);
	assert_int_equal(f.wait_ms, 50);
	f = facts_in(LEND_OPENMP_LLVM, ENV("KMP_BLOCKTIME", "infinite"));
	assert_int_equal(f.wait, LEND_WAIT_SPINS);
	f = facts_in(LEND_OPENMP_GNU, ENV("OMP_WAIT_POLICY", "passive", "GOMP_SPINCOUNT", "INFINITY"));
	assert_int_equal(f.wait, LEND_WAIT_SPINS);
	f = facts_in(LEND_OPENMP_GNU, ENV("KMP_BLOCKTIME", "0"));
	assert_int_equal(f.wait, LEND_WAIT_DEFAULT);
}

TEST(progress_threads_are_found)
{
	assert_int_equal(facts_in(0, ENV("MPICH_ASYNC_PROGRESS", "1")).progress, 1);
	assert_int_equal(facts_in(0, ENV("MPIR_CVAR_ASYNC_PROGRESS", "true")).progress, 1);
	assert_int_equal(facts_in(0, ENV("I_MPI_ASYNC_PROGRESS", "1",
					 "I_MPI_ASYNC_PROGRESS_THREADS", "2")).progress, 2);
	assert_int_equal(facts_in(0, ENV("MPICH_ASYNC_PROGRESS", "0")).progress, 0);
	assert_int_equal(facts_in(0, ENV("A", "B")).progress, 0);
}

TEST(cpus_per_task_of_the_job_are_read)
{
	assert_int_equal(facts_in(0, ENV("SLURM_CPUS_PER_TASK", "8")).asked, 8);
	assert_int_equal(facts_in(0, ENV("SLURM_CPUS_PER_TASK", "many")).asked, 0);
	assert_int_equal(facts_in(0, ENV("SLURM_CPUS_PER_TASK", "-3")).asked, 0);
	assert_int_equal(facts_in(0, ENV("OMPI_MCA_mpi_yield_when_idle", "1")).mpi_yields, 1);
}
