/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a step that exchanges ENTRIES keys with 64-byte values, for the fake
 * server: the agent may then hold LIMIT KiB. That is not a matter of time, so it can
 * be asserted.
 *
 * usage: agent-memory ENTRIES LIMIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../contrib/bench/agent_process.h"
#include "pmi2.h"

#define VALUE_BYTES 64

static int rank, size;

static void fail(const char *what, long number)
{
	fprintf(stderr, "agent-memory: rank %d: %s (%ld)\n", rank, what,
		number);
	PMI2_Abort(1, what);
	exit(1);
}

/* The memory of a process, in KiB, but for what it maps of files. */
static long resident(pid_t pid)
{
	char path[64], line[256];
	long kib = 0, part;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &part) == 1 ||
		    sscanf(line, "RssShmem: %ld", &part) == 1)
			kib += part;
	if (f)
		fclose(f);
	return kib;
}

static void exchange(int entries)
{
	char key[32], value[VALUE_BYTES + 1], got[VALUE_BYTES + 1];
	int len;

	memset(value, 'v', VALUE_BYTES);
	value[VALUE_BYTES] = '\0';
	for (int i = rank; i < entries; i += size) {
		snprintf(key, sizeof(key), "entry-%d", i);
		if (PMI2_KVS_Put(key, value))
			fail("put", i);
	}
	if (PMI2_KVS_Fence())
		fail("fence", 0);
	for (int i = 0; i < entries; i++) {
		snprintf(key, sizeof(key), "entry-%d", i);
		if (PMI2_KVS_Get(NULL, PMI2_ID_NULL, key, got, sizeof(got),
				 &len) || strcmp(got, value))
			fail("get", i);
	}
}

int main(int argc, char **argv)
{
	int entries = argc > 1 ? atoi(argv[1]) : 0;
	long limit = argc > 2 ? atol(argv[2]) : 0;
	long kib;

	if (PMI2_Init(NULL, &size, &rank, NULL) || entries < 1 || limit < 1)
		return 1;
	exchange(entries);
	kib = resident(agent_process("pmi2x-agent", getenv("PMI_JOBID"), NULL));
	if (kib <= 0)
		fail("cannot see the agent", kib);
	if (rank == 0)
		printf("%d entries of %d bytes: the agent holds %ld KiB\n",
		       entries, VALUE_BYTES, kib);
	if (kib > limit)
		fail("KiB are more than the agent may hold", kib);
	/* An agent ends with its last rank, also while another rank looks at it. */
	if (PMI2_KVS_Fence())
		fail("fence", 1);
	return PMI2_Finalize() ? 1 : 0;
}
