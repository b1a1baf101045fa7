/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts about a rank that decide whether its threads have cores. */
#pragma once

#include <stdint.h>

#define LEND_CORES_MAX 4096
#define LEND_WORD_BITS 64

/* A set of cores. A core is what Linux calls a CPU. */
struct lend_cores {
	uint64_t words[LEND_CORES_MAX / LEND_WORD_BITS];
};

enum lend_openmp {
	LEND_OPENMP_NONE,
	LEND_OPENMP_GNU,  /* libgomp */
	LEND_OPENMP_LLVM, /* libomp, libiomp5 */
	LEND_OPENMP_OTHER,
};

/* How threads of OpenMP wait for the next parallel region. */
enum lend_wait {
	LEND_WAIT_DEFAULT, /* libgomp: spins for a moment; libomp: for 200 ms */
	LEND_WAIT_SPINS,
	LEND_WAIT_SLEEPS,
	LEND_WAIT_MS,      /* spins for wait_ms */
};

struct lend_facts {
	uint32_t rank;
	uint32_t threads;    /* of an OpenMP team; 1 without OpenMP */
	uint32_t asked;      /* SLURM_CPUS_PER_TASK; 0: not set */
	uint32_t progress;   /* threads of MPI that poll all the time */
	uint32_t mpi_yields; /* 1: a wait of MPI calls sched_yield */
	uint32_t openmp;     /* enum lend_openmp */
	uint32_t wait;       /* enum lend_wait */
	uint32_t wait_ms;
	struct lend_cores cores; /* on which the rank may run */
};

/* Value of an environment variable, or NULL. */
typedef const char *lend_getenv(const char *name);

/* Set `asked`, `progress`, `mpi_yields`, `wait` and `wait_ms`; `openmp` is set before. */
void lend_facts_read_env(struct lend_facts *facts, lend_getenv *get);
