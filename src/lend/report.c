/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks have more threads than cores, what waits by spinning, and the remedy. */
#include "lend/report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lend/cores.h"

#define PREFIX "PMI2X_LEND: "
#define LINE_MAX_BYTES 512
#define LIST_MAX 64 /* bytes of a list of cores */

/* ---- text that grows ---- */

struct text {
	char *at; /* NULL: no memory */
	size_t used;
};

static void add(struct text *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	char *grown = t->at ? realloc(t->at, t->used + LINE_MAX_BYTES) : NULL;
	va_list ap;
	int n;

	if (!grown) {
		free(t->at);
		t->at = NULL;
		return;
	}
	t->at = grown;
	va_start(ap, fmt);
	n = vsnprintf(t->at + t->used, LINE_MAX_BYTES, fmt, ap);
	va_end(ap);
	t->used += n < 0 ? 0 : n < LINE_MAX_BYTES ? (size_t)n : LINE_MAX_BYTES - 1;
}

static const char *s_of(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* ---- a line for each rank ---- */

static const char *library_of(const struct lend_facts *f)
{
	static const char *const names[] = {
		[LEND_OPENMP_NONE] = "no OpenMP",
		[LEND_OPENMP_GNU] = "libgomp",
		[LEND_OPENMP_LLVM] = "libomp",
		[LEND_OPENMP_OTHER] = "OpenMP",
	};

	return f->openmp <= LEND_OPENMP_OTHER ? names[f->openmp] : "OpenMP";
}

static void add_wait(struct text *t, const struct lend_facts *f)
{
	if (f->openmp == LEND_OPENMP_NONE)
		return;
	add(t, ", %s ", library_of(f));
	if (f->wait == LEND_WAIT_SPINS)
		add(t, "spins");
	else if (f->wait == LEND_WAIT_SLEEPS)
		add(t, "sleeps");
	else if (f->wait == LEND_WAIT_MS)
		add(t, "spins for %u ms", f->wait_ms);
	else if (f->openmp == LEND_OPENMP_LLVM)
		add(t, "spins for 200 ms (KMP_BLOCKTIME is not set)");
	else
		add(t, "spins briefly (OMP_WAIT_POLICY is not set)");
}

static void add_rank(struct text *t, const struct lend_facts *f)
{
	uint32_t cores = lend_cores_count(&f->cores);
	char list[LIST_MAX];

	lend_cores_text(&f->cores, list, sizeof(list));
	add(t, PREFIX "rank %u: %u core%s (%s), %u thread%s of %s; in a wait MPI %s", f->rank,
	    cores, s_of(cores), list, f->threads, s_of(f->threads), library_of(f),
	    f->mpi_yields ? "yields" : "spins");
	add_wait(t, f);
	if (f->progress)
		add(t, "; %u progress thread%s of MPI", f->progress, s_of(f->progress));
	add(t, "\n");
}

/* ---- remedies ---- */

enum lack {
	LACK_NOTHING,
	LACK_ASKED,    /* the job has asked for the cores, and the step has not got them */
	LACK_CORES,    /* fewer cores than threads */
	LACK_PROGRESS, /* a core for each thread, and none for MPI's progress */
};

static enum lack lack_of(const struct lend_facts *f)
{
	uint64_t cores = lend_cores_count(&f->cores);
	uint64_t all = (uint64_t)f->threads + f->progress;

	if (all <= cores)
		return LACK_NOTHING;
	if (f->asked > cores)
		return LACK_ASKED;
	return f->threads > cores ? LACK_CORES : LACK_PROGRESS;
}

static bool is_alike(const struct lend_facts *a, const struct lend_facts *b)
{
	return lack_of(a) == lack_of(b) && a->threads == b->threads &&
	       a->progress == b->progress && a->asked == b->asked &&
	       lend_cores_count(&a->cores) == lend_cores_count(&b->cores);
}

/* "rank 3 has", or "ranks 0-3 each have" of ranks whose numbers follow each other. */
static void add_ranks(struct text *t, const struct lend_facts *f, uint32_t n)
{
	bool row = f[n - 1].rank - f->rank == n - 1;

	if (n == 1)
		add(t, PREFIX "rank %u has ", f->rank);
	else if (row)
		add(t, PREFIX "ranks %u-%u each have ", f->rank, f[n - 1].rank);
	else
		add(t, PREFIX "rank %u and %u others each have ", f->rank, n - 1);
}

static void add_remedy(struct text *t, const struct lend_facts *f, uint32_t n)
{
	uint32_t cores = lend_cores_count(&f->cores), all = f->threads + f->progress;

	add_ranks(t, f, n);
	add(t, "%u thread%s", f->threads, s_of(f->threads));
	if (f->progress)
		add(t, " and %u progress thread%s of MPI", f->progress, s_of(f->progress));
	add(t, " on %u core%s", cores, s_of(cores));
	switch (lack_of(f)) {
	case LACK_ASKED:
		add(t, ": the job has asked for %u CPUs per task, but srun of Slurm 22.05 and 23.02 reads SRUN_CPUS_PER_TASK only; before srun: export SRUN_CPUS_PER_TASK=%u; or: srun -c %u\n",
		    f->asked, f->asked > all ? f->asked : all, f->asked > all ? f->asked : all);
		break;
	case LACK_PROGRESS:
		add(t, ", so progress has no core of its own: srun -c %u", all);
		if (cores > f->progress)
			add(t, ", or OMP_NUM_THREADS=%u", cores - f->progress);
		add(t, "\n");
		break;
	default:
		add(t, ": srun -c %u", all);
		if (f->openmp != LEND_OPENMP_NONE && cores > f->progress)
			add(t, ", or OMP_NUM_THREADS=%u", cores - f->progress);
		add(t, "\n");
	}
}

/* True: at least one rank lacks cores. */
static bool add_remedies(struct text *t, const struct lend_facts *facts, uint32_t n)
{
	bool any = false;

	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && is_alike(&facts[i], &facts[end]); end++)
			;
		if (lack_of(&facts[i]) == LACK_NOTHING)
			continue;
		add_remedy(t, &facts[i], end - i);
		any = true;
	}
	return any;
}

/* Ranks that share cores, each of which alone would have enough. */
static bool add_shared(struct text *t, const struct lend_facts *facts, uint32_t n)
{
	struct lend_cores all = { { 0 } };
	uint64_t threads = 0;
	uint32_t cores, most = 1;
	bool shared = false;
	char list[LIST_MAX];

	for (uint32_t i = 0; i < n; i++) {
		uint32_t own = facts[i].threads + facts[i].progress;

		shared |= lend_cores_overlap(&all, &facts[i].cores);
		lend_cores_join(&all, &facts[i].cores);
		threads += own;
		most = own > most ? own : most;
	}
	cores = lend_cores_count(&all);
	if (!shared || threads <= cores)
		return false;
	lend_cores_text(&all, list, sizeof(list));
	add(t, PREFIX "the %u ranks share %u core%s (%s) and have %llu threads: srun -c %u --cpu-bind=cores, on more nodes if there are not enough cores",
	    n, cores, s_of(cores), list, (unsigned long long)threads, most);
	if (most > 1)
		add(t, ", or fewer threads with OMP_NUM_THREADS");
	add(t, "\n");
	return true;
}

char *lend_report(const struct lend_facts *facts, uint32_t n, uint32_t ranks,
		  const char *node)
{
	struct text t = { calloc(1, 1), 0 };

	add(&t, PREFIX "node %.64s, %u rank%s:\n", node, ranks, s_of(ranks));
	for (uint32_t i = 0; i < n; i++)
		add_rank(&t, &facts[i]);
	if (n < ranks)
		add(&t, PREFIX "%u of %u ranks have not called MPI_Init yet\n", ranks - n, ranks);
	if (!add_remedies(&t, facts, n) && !add_shared(&t, facts, n))
		add(&t, PREFIX "each thread has a core\n");
	return t.at;
}
