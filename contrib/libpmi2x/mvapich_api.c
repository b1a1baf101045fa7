/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that MVAPICH2's start-up code looks for. */
#include <string.h>

#include "api.h"
#include "pmi2.h"
#include "pmi2x.h"

#define STRIDE PMI2X_MAXLENGTH

static int start_fence(enum mvapich_kind kind)
{
	return pmi2_code(SESSION_CALL(true, s,
				      mvapich_fence(&s->mvapich, kind)));
}

static int start_gather(enum mvapich_kind kind, const char *value, size_t stride)
{
	if (value && strlen(value) >= STRIDE)
		return PMI2_ERR_INVALID_VAL_LENGTH;
	return pmi2_code(SESSION_CALL(value, s,
				      mvapich_gather(&s->mvapich, kind, value,
						     stride)));
}

static int finish(enum mvapich_kind kind, mvapich_use *use, void *to)
{
	return pmi2_code(SESSION_CALL(to || !use, s,
				      mvapich_wait(&s->mvapich, kind, use,
						   STRIDE, to)));
}

int PMI_Ibarrier(void)
{
	return start_fence(MVAPICH_BARRIER);
}

int PMI_Wait(void)
{
	return finish(MVAPICH_BARRIER, NULL, NULL);
}

int PMI2_KVS_Ifence(void)
{
	return start_fence(MVAPICH_FENCE);
}

int PMI2_KVS_Wait(void)
{
	return finish(MVAPICH_FENCE, NULL, NULL);
}

int PMI2_Iallgather(const char value[])
{
	return start_gather(MVAPICH_GATHER, value, 0);
}

int PMI2_Iallgather_wait(void *buf)
{
	return finish(MVAPICH_GATHER, mvapich_copy, buf);
}

int PMI2_SHMEM_Iallgather(const char value[])
{
	return start_gather(MVAPICH_SHARED_GATHER, value, STRIDE);
}

int PMI2_SHMEM_Iallgather_wait(void **buf)
{
	return finish(MVAPICH_SHARED_GATHER, mvapich_share, buf);
}
