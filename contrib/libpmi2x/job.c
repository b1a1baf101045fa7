/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of the job that a process belongs to. */
#include "job.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libshm/records.h"

#define DONE_MAX 4096 /* offsets remembered; more are not given back */

void job_init(struct job *job)
{
	memset(job, 0, sizeof(*job));
	job->rank = -1;
	pthread_mutex_init(&job->entering, NULL);
	pthread_mutex_init(&job->batch.lock, NULL);
	buf_init(&job->batch.records, BATCH_MAX + 2 * RECORD_VALUE_MAX);
	pthread_mutex_init(&job->done.lock, NULL);
	buf_init(&job->done.offsets, DONE_MAX * sizeof(uint64_t));
	rank_trace_init(&job->trace);
}

void job_destroy(struct job *job)
{
	buf_free(&job->done.offsets);
	pthread_mutex_destroy(&job->done.lock);
	buf_free(&job->batch.records);
	pthread_mutex_destroy(&job->batch.lock);
	pthread_mutex_destroy(&job->entering);
	free(job->server_build);
	free(atomic_load(&job->name));
}
