/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operation of pmi2x bench collectives: what the PMI server of a node has taken for a fence of
 * one value a rank, in bytes: resident memory, and as the part of it what is shared
 * with the ranks. That is what the process above the ranks has taken, and all of
 * pmi2x's processes, which were not there before. A PMIx server may have been: then all
 * of the process above counts.
 */
#include "bench_rank.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent_process.h"

struct held {
	double resident, shared;
};

static struct held held_by(pid_t pid)
{
	struct held held = { 0, 0 };
	char path[64], line[256];
	double kb;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "VmRSS: %lf", &kb) == 1)
			held.resident = kb * 1024;
		else if (sscanf(line, "RssShmem: %lf", &kb) == 1)
			held.shared = kb * 1024;
	}
	if (file)
		fclose(file);
	return held;
}

static struct held held_by_program(const char *program)
{
	const char *jobid = getenv("PMI_JOBID"), *node = getenv("SLURMD_NODENAME");
	pid_t pid = jobid ? agent_process(program, jobid, node) : 0;

	return pid ? held_by(pid) : (struct held){ 0, 0 };
}

/* The rank of the node that comes first sees the server idle. */
static void memory_start(struct bench *b)
{
	struct held *idle = bench_alloc(b, sizeof(*idle));

	*idle = held_by(getppid());
	b->state = idle;
}

static void memory_round(struct bench *b, int i, struct bench_stamp *stamp)
{
	const struct held *idle = b->state;
	struct held now, agent, pmixd;

	bench_check(b, idle->resident > 0 ? PMI2_SUCCESS : PMI2_FAIL,
		    "look at the memory of the PMI server");
	bench_put(b, i);
	bench_check(b, b->pmi.fence(), "fence");
	now = held_by(getppid());
	agent = held_by_program("pmi2x-agent");
	pmixd = held_by_program("pmi2x-pmixd");
	stamp->in = 0;
	stamp->out = now.resident + agent.resident + pmixd.resident;
	stamp->part = now.shared + agent.shared + pmixd.shared;
	if (b->pmi.early)
		return;
	stamp->out -= idle->resident;
	stamp->part -= idle->shared;
}

const struct bench_op bench_op_memory = {
	.name = "memory", .clock = BENCH_MOST, .once = true,
	.start = memory_start, .round = memory_round,
	.check = bench_check_all,
};
