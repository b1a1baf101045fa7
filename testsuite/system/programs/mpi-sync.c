/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIX_Sync_* of libpmi2x before MPI_Init, between two collectives, after MPI_Finalize, and in a
 * child of fork. With the argument "late" rank 0 waits for what never comes, and "gone" makes
 * rank 1 leave. Without MPI: -DNO_MPI.
 */
#include <pmi2.h>
#include <pmi2x.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef NO_MPI
#include <mpi.h>
#else
#define MPI_Init(a, b)
#define MPI_Barrier(c)
#define MPI_Finalize()
#endif

static PMIX_Sync *step;
static int rank, size;

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "rank %d: wrong: %s: %s\n", rank, what, PMIX_Sync_error(step));
	exit(1);
}

static void meet(const char *phase)
{
	PMIX_Sync_value *values;
	char text[32];
	int n = 0;

	snprintf(text, sizeof(text), "%s %d", phase, rank);
	require(!PMIX_Sync_allgather(step, phase, text, strlen(text), 0, &values, &n), "gather");
	require(n == size, "number of values");
	for (int r = 0; r < n; r++) {
		snprintf(text, sizeof(text), "%s %d", phase, r);
		require(values[r].len == strlen(text) && !strcmp(values[r].data, text), "value");
	}
	free(values);
	require(!PMIX_Sync_barrier(step, NULL, 0), "barrier");
	require(!PMIX_Sync_barrier(step, NULL, PMI2X_SYNC_NODE), "barrier of a node");
}

static void use_keys(const char *phase)
{
	static char large[1 << 20];
	char key[64], flags[64];
	const char *const keys[] = { key, flags };
	PMIX_Sync_value *value;
	int64_t sum = 0;
	int me = 0;

	snprintf(flags, sizeof(flags), "%s sum", phase);
	snprintf(key, sizeof(key), "%s %d", phase, rank);
	memset(large, rank + 1, sizeof(large));
	require(!PMIX_Sync_put(step, key, large, sizeof(large), 0), "put");
	require(!PMIX_Sync_add(step, flags, rank, 0, &sum), "add");
	snprintf(key, sizeof(key), "%s %d", phase, (rank + 1) % size);
	require(!PMIX_Sync_wait(step, keys, 2, 0), "wait");
	require(!PMIX_Sync_get(step, key, PMI2X_SYNC_WAIT, &value), "get");
	require(value->len == sizeof(large) &&
		((const char *)value->data)[value->len - 1] == (rank + 1) % size + 1, "bytes");
	free(value);
	require(PMIX_Sync_get(step, "none", 0, &value) == PMI2_ERR_INVALID_KEY, "no key");
	require(!PMIX_Sync_elect(step, phase, 0, &me), "elect");
	require(!PMIX_Sync_barrier(step, "added", 0), "barrier");
	require(!PMIX_Sync_add(step, flags, 0, 0, &sum) && sum == size * (size - 1) / 2, "sum");
	require(!PMIX_Sync_barrier(step, "read", 0), "barrier");
	if (me)
		printf("%s elected one\n", phase);
}

static void in_child(void)
{
	int status = 0;

	if (!fork()) {
		int lost = PMIX_Sync_barrier(step, NULL, 0) == PMI2_ERR_INIT;

		PMIX_Sync_close(step);
		_exit(lost && !PMIX_Sync_open(&step) && !PMIX_Sync_put(step, "child", "", 0, 0) ?
		      0 : 1);
	}
	require(wait(&status) > 0 && status == 0, "child");
}

/* Others enter the barrier, and rank 0 enters it again. */
static void be_late(void)
{
	static const char *const keys[] = { "never", "child" };

	if (rank == 0) {
		require(!PMIX_Sync_timeout(step, 100), "timeout");
		require(PMIX_Sync_barrier(step, "late", 0) == PMI2X_ERR_TIMEOUT, "late barrier");
		printf("%s\n", PMIX_Sync_error(step));
		require(PMIX_Sync_wait(step, keys, 2, 0) == PMI2X_ERR_TIMEOUT, "late key");
		printf("%s\n", PMIX_Sync_error(step));
		require(!PMIX_Sync_timeout(step, -1), "timeout");
		require(!PMIX_Sync_put(step, "go", NULL, 0, 0), "put");
	}
	require(!PMIX_Sync_wait(step, (const char *const[]){ "go" }, 1, 0), "wait");
	require(!PMIX_Sync_barrier(step, "late", 0), "barrier entered again");
}

static void be_gone(void)
{
	if (rank == 1)
		exit(0);
	require(PMIX_Sync_barrier(step, "late", 0) == PMI2_ERR_OTHER, "barrier without a rank");
	if (rank == 0)
		printf("%s\n", PMIX_Sync_error(step));
}

static void misuse(void)
{
	static char large[(8 << 20) + 1];
	PMIX_Sync_value *value;

	require(PMIX_Sync_put(step, NULL, "", 0, 0) == PMI2_ERR_INVALID_ARG, "no key");
	require(PMIX_Sync_put(step, "k", large, sizeof(large), 0) == PMI2_ERR_INVALID_ARG &&
		strstr(PMIX_Sync_error(step), "8 MiB"), "long value");
	require(PMIX_Sync_wait(step, NULL, 0, 0) == PMI2_ERR_INVALID_ARG, "no keys");
	require(PMIX_Sync_timeout(step, -2) == PMI2_ERR_INVALID_ARG, "timeout");
	require(!PMIX_Sync_put(step, "", "", 0, 0) && !PMIX_Sync_get(step, "", 0, &value) &&
		!value->len, "empty key");
	free(value);
}

int main(int argc, char **argv)
{
	int rc = PMIX_Sync_open(&step);

	if (rc) {
		printf("error %d: %s\n", rc, PMIX_Sync_error(step));
		PMIX_Sync_close(step);
		return 1;
	}
	require(!PMIX_Sync_rank(step, &rank, &size), "rank");
	meet("before");
	use_keys("before");
	MPI_Init(&argc, &argv);
	use_keys("beside");
	MPI_Barrier(MPI_COMM_WORLD);
	meet("beside");
	MPI_Finalize();
	use_keys("after");
	in_child();
	misuse();
	if (argc > 1 && !strcmp(argv[1], "late"))
		be_late();
	if (argc > 1 && !strcmp(argv[1], "gone"))
		be_gone();
	PMIX_Sync_close(step);
	return 0;
}
