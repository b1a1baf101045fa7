/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe: what its files share. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum probe_exit {
	PROBE_OK = 0,
	PROBE_FAILED = 1, /* a check failed, or nodes differ */
	PROBE_USAGE = 2,
	PROBE_NO_PMI = 3, /* the session could not be started */
	/* Results of --mpi. */
	PROBE_PMIX = 4,      /* uses PMIx only: nodes need libpmix */
	PROBE_NO_CLIENT = 5, /* uses no PMI */
	PROBE_UNKNOWN = 6,   /* unknown until it is run */
};

/* The process in its job, as init told. */
struct probe {
	int rank;
	int size;
	int appnum;
	bool spawned;
};

/* Say what failed on stderr, with the rank. Returns false. */
bool probe_fail(const struct probe *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A line on stdout, from rank 0 only. */
void probe_say(const struct probe *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* How the plural of "process" ends: "%d process%s". */
static inline const char *probe_es(long n)
{
	return n == 1 ? "" : "es";
}

/* Print what the server offers. */
bool probe_show(const struct probe *p);

/*
 * Run the operation words[0] with its arguments, which may use up more words:
 * *used says how many. Whether it succeeded; *used 0: a usage error, which has
 * been reported.
 */
bool probe_operation(const struct probe *p, char **words, int count, int *used);
/* The table of operations for --help. */
void probe_list_operations(FILE *to);

/* Compare the plugin of the nodes of a Slurm node list. An exit status. */
int probe_nodes(const char *list);
