/* SPDX-License-Identifier: BSD-3-Clause */
/* The report about a node: what it says of each rank, and the remedies. */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>

#include "lend/cores.h"
#include "lend/report.h"

#define RANKS 4

/* Ranks of libgomp with `threads` each, on `cores` cores of their own each. */
static void make_ranks(struct lend_facts *f, uint32_t n, uint32_t threads, uint32_t cores)
{
	memset(f, 0, n * sizeof(*f));
	for (uint32_t i = 0; i < n; i++) {
		f[i].rank = i;
		f[i].threads = threads;
		f[i].openmp = LEND_OPENMP_GNU;
		for (uint32_t k = 0; k < cores; k++)
			lend_cores_add(&f[i].cores, i * cores + k);
	}
}

static char *report_of(const struct lend_facts *f, uint32_t n, uint32_t ranks)
{
	char *text = lend_report(f, n, ranks, "n1");

	assert_non_null(text);
	return unit_at_end(free, text);
}

static void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void assert_silent(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" in:\n%s", part, text);
}

TEST(enough_cores_need_no_remedy)
{
	struct lend_facts f[2];
	const char *text;

	make_ranks(f, 2, 2, 2);
	text = report_of(f, 2, 2);
	assert_string_equal(text,
		"PMI2X_LEND: node n1, 2 ranks:\n"
		"PMI2X_LEND: rank 0: 2 cores (0-1), 2 threads of libgomp; in a wait MPI spins, libgomp spins briefly (OMP_WAIT_POLICY is not set)\n"
		"PMI2X_LEND: rank 1: 2 cores (2-3), 2 threads of libgomp; in a wait MPI spins, libgomp spins briefly (OMP_WAIT_POLICY is not set)\n"
		"PMI2X_LEND: each thread has a core\n");
}

TEST(cores_that_the_job_asked_for_and_the_step_lacks_are_named)
{
	struct lend_facts f[RANKS];
	const char *text;

	make_ranks(f, RANKS, 8, 1);
	for (int i = 0; i < RANKS; i++)
		f[i].asked = 8;
	text = report_of(f, RANKS, RANKS);
	assert_says(text, "ranks 0-3 each have 8 threads on 1 core: the job has asked for 8 CPUs per task");
	assert_says(text, "export SRUN_CPUS_PER_TASK=8; or: srun -c 8\n");
	assert_silent(text, "each thread has a core");
}

TEST(more_threads_than_cores_have_a_remedy)
{
	struct lend_facts f[1];

	make_ranks(f, 1, 4, 2);
	assert_says(report_of(f, 1, 1),
		    "rank 0 has 4 threads on 2 cores: srun -c 4, or OMP_NUM_THREADS=2\n");
	f->asked = 2;
	assert_says(report_of(f, 1, 1), ": srun -c 4, or OMP_NUM_THREADS=2\n");
}

TEST(ranks_that_differ_have_their_own_lines)
{
	struct lend_facts f[3];
	const char *text;

	make_ranks(f, 3, 2, 1);
	f[1].threads = 3;
	text = report_of(f, 3, 3);
	assert_says(text, "rank 0 has 2 threads on 1 core: srun -c 2");
	assert_says(text, "rank 1 has 3 threads on 1 core: srun -c 3");
	assert_says(text, "rank 2 has 2 threads on 1 core: srun -c 2");
}

TEST(progress_thread_without_a_core_is_named)
{
	struct lend_facts f[1];
	const char *text;

	make_ranks(f, 1, 2, 2);
	f->progress = 1;
	text = report_of(f, 1, 1);
	assert_says(text, "; 1 progress thread of MPI\n");
	assert_says(text, "rank 0 has 2 threads and 1 progress thread of MPI on 2 cores, so progress has no core of its own: srun -c 3, or OMP_NUM_THREADS=1\n");
	make_ranks(f, 1, 1, 2);
	f->progress = 1;
	assert_says(report_of(f, 1, 1), "each thread has a core");
}

TEST(ranks_that_share_cores_are_counted_together)
{
	struct lend_facts f[RANKS];
	const char *text;

	make_ranks(f, RANKS, 2, 0);
	for (int i = 0; i < RANKS; i++)
		for (uint32_t core = 0; core < 4; core++)
			lend_cores_add(&f[i].cores, core);
	text = report_of(f, RANKS, RANKS);
	assert_says(text, "the 4 ranks share 4 cores (0-3) and have 8 threads: srun -c 2 --cpu-bind=cores");
	for (int i = 0; i < RANKS; i++)
		f[i].threads = 1;
	assert_says(report_of(f, RANKS, RANKS), "each thread has a core");
}

TEST(waits_are_named)
{
	static const struct {
		enum lend_openmp openmp;
		enum lend_wait wait;
		const char *text;
	} waits[] = {
		{ LEND_OPENMP_GNU, LEND_WAIT_SPINS, "MPI spins, libgomp spins\n" },
		{ LEND_OPENMP_GNU, LEND_WAIT_SLEEPS, "MPI spins, libgomp sleeps\n" },
		{ LEND_OPENMP_LLVM, LEND_WAIT_MS, "MPI spins, libomp spins for 7 ms\n" },
		{ LEND_OPENMP_LLVM, LEND_WAIT_DEFAULT, "libomp spins for 200 ms (KMP_BLOCKTIME is not set)\n" },
		{ LEND_OPENMP_NONE, LEND_WAIT_DEFAULT, "1 thread of no OpenMP; in a wait MPI spins\n" },
	};
	struct lend_facts f[1];

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		make_ranks(f, 1, 1, 1);
		f->openmp = waits[i].openmp;
		f->wait = waits[i].wait;
		f->wait_ms = 7;
		assert_says(report_of(f, 1, 1), waits[i].text);
	}
	f->mpi_yields = 1;
	assert_says(report_of(f, 1, 1), "in a wait MPI yields\n");
}

TEST(ranks_that_have_not_come_are_counted)
{
	struct lend_facts f[1];
	const char *text;

	make_ranks(f, 1, 1, 1);
	text = report_of(f, 1, 3);
	assert_says(text, "node n1, 3 ranks:\n");
	assert_says(text, "2 of 3 ranks have not called MPI_Init yet\n");
	assert_says(report_of(f, 0, 3), "3 of 3 ranks");
}

/* Other processes of the user can write into the table. */
TEST(any_bytes_make_a_report)
{
	struct lend_facts f[RANKS];
	char *text;

	for (int seed = 1; seed < 200; seed++) {
		srand((unsigned)seed);
		for (size_t i = 0; i < sizeof(f); i++)
			((unsigned char *)f)[i] = (unsigned char)(seed == 1 ? 0xff : rand());
		text = lend_report(f, RANKS, RANKS, "n1");
		assert_non_null(text);
		assert_says(text, "node n1, 4 ranks:\n");
		free(text);
	}
}

TEST(lists_of_cores_are_ranges)
{
	struct lend_cores set = { { 0 } };
	char text[64];

	lend_cores_text(&set, text, sizeof(text));
	assert_string_equal(text, "");
	lend_cores_add(&set, 0);
	lend_cores_add(&set, 63);
	lend_cores_add(&set, 64);
	lend_cores_add(&set, 65);
	lend_cores_add(&set, LEND_CORES_MAX - 1);
	lend_cores_add(&set, LEND_CORES_MAX);
	lend_cores_text(&set, text, sizeof(text));
	assert_string_equal(text, "0,63-65,4095");
	assert_int_equal(lend_cores_count(&set), 5);
	for (uint32_t i = 100; i < 200; i += 2)
		lend_cores_add(&set, i);
	lend_cores_text(&set, text, 24);
	assert_string_equal(text, "0,63-65,100,102,104...");
}
