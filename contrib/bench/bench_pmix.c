/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI functions that pmi2x bench collectives needs, over a PMIx client library, in place
 * of bench_pmi.c: put with commit, fence with data collected, get by rank.
 */
#include "bench_pmi.h"

#include <stdio.h>
#include <stdlib.h>

#include <pmix.h>

/* A PMIx session belongs to the process; this is where it keeps its name. */
static pmix_proc_t self;

static int job_size(int *size)
{
	pmix_value_t *value;
	pmix_proc_t job;

	PMIX_PROC_LOAD(&job, self.nspace, PMIX_RANK_WILDCARD);
	if (PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value) != PMIX_SUCCESS)
		return PMI2_FAIL;
	*size = value->data.uint32;
	PMIX_VALUE_RELEASE(value);
	return PMI2_SUCCESS;
}

static int init(int *spawned, int *size, int *rank, int *appnum)
{
	if (PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
		return PMI2_ERR_INIT;
	*spawned = 0;
	*appnum = 0;
	*rank = self.rank;
	return job_size(size);
}

static int finalize(void)
{
	return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? PMI2_SUCCESS :
							PMI2_FAIL;
}

static int abort_job(int flag, const char msg[])
{
	(void)flag;
	PMIx_Abort(1, msg, NULL, 0);
	exit(1);
}

/* Committed at once: the server has it when put returns, as with PMI-2. */
static int put(const char key[], const char value[])
{
	char copy[PMI2_MAX_VALLEN];
	pmix_value_t wrapped = { .type = PMIX_STRING, .data.string = copy };

	snprintf(copy, sizeof(copy), "%s", value);
	return PMIx_Put(PMIX_GLOBAL, key, &wrapped) == PMIX_SUCCESS &&
	       PMIx_Commit() == PMIX_SUCCESS ? PMI2_SUCCESS : PMI2_FAIL;
}

static int meet(bool collect)
{
	pmix_info_t info;
	pmix_proc_t job;
	int rc;

	PMIX_PROC_LOAD(&job, self.nspace, PMIX_RANK_WILDCARD);
	PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
	rc = PMIx_Fence(&job, 1, &info, 1);
	PMIX_INFO_DESTRUCT(&info);
	return rc == PMIX_SUCCESS ? PMI2_SUCCESS : PMI2_FAIL;
}

static int fence(void)
{
	return meet(true);
}

static int barrier(void)
{
	return meet(false);
}

static int get(const char *jobid, int src, const char key[], char value[],
	       int maxvalue, int *vallen)
{
	pmix_value_t *found;
	pmix_proc_t source;

	(void)jobid;
	PMIX_PROC_LOAD(&source, self.nspace, src);
	if (PMIx_Get(&source, key, NULL, 0, &found) != PMIX_SUCCESS)
		return PMI2_ERR_INVALID_KEY;
	*vallen = snprintf(value, maxvalue, "%s", found->data.string);
	PMIX_VALUE_RELEASE(found);
	return PMI2_SUCCESS;
}

/* Fetches a value that no fence has published: as PMIX_KVS_Fetch, without a limit. */
static int fetch(int rank, const char *key, void *value, size_t *len, int timeout_ms)
{
	int found, rc;

	(void)timeout_ms;
	rc = get(NULL, rank, key, value, (int)*len, &found);
	*len = (size_t)found;
	return rc;
}

/* PMIx_Get_version would put spaces into the line of results. */
static const char *version(void)
{
	return "pmix";
}

bool bench_pmi_load(struct bench_pmi *pmi, const char *library)
{
	(void)library; /* the one this program is linked with */
	*pmi = (struct bench_pmi){
		.init = init,
		.finalize = finalize,
		.abort = abort_job,
		.put = put,
		.fence = fence,
		.get = get,
		.fetch = fetch,
		.barrier = barrier,
		.version = version,
		.early = true,
	};
	return true;
}
