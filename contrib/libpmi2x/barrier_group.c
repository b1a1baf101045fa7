/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks a group, writes it as the wire has it, enters its barrier. */
#include "barrier_group.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "job.h"
#include "kvs.h"
#include "pmi.h"
#include "wire.h"

#define GROUP_TEXT_MAX ((size_t)4 << 20) /* bytes of a group on the wire */

/*
 * The absolute value of FNV-1a as MPICH's client has it, as a group may have both kinds of
 * members; of the smallest number, which has none, itself.
 */
static int tag_number(const char *tag)
{
	uint32_t hash = 2166136261u;

	if (!tag)
		return 0;
	for (; *tag; tag++)
		hash = (hash ^ (unsigned char)*tag) * 16777619u;
	return hash > INT32_MAX ? (int)-hash : (int)hash;
}

/* Mark a rank in the set. Is it one of the job's, and not yet in it? */
static bool mark(unsigned char *set, int rank, int size)
{
	unsigned char bit;

	if (rank < 0 || rank >= size)
		return false;
	bit = 1u << rank % 8;
	if (set[rank / 8] & bit)
		return false;
	set[rank / 8] |= bit;
	return true;
}

/* Different ranks of the job, this one among them: 0, -EINVAL or -ENOMEM. */
static int check_list(const struct job *job, const int *ranks, int count)
{
	unsigned char *set = calloc(1, job->size / 8 + 1);
	bool own = false, valid = true;

	if (!set)
		return -ENOMEM;
	for (int i = 0; valid && i < count; i++) {
		valid = mark(set, ranks[i], job->size);
		own = own || ranks[i] == job->rank;
	}
	free(set);
	return valid && own ? 0 : -EINVAL;
}

static int write_list(struct buf *b, const int *ranks, int count)
{
	int rc = 0;

	for (int i = 0; !rc && i < count; i++)
		rc = buf_printf(b, "%s%d", i ? "," : "", ranks[i]);
	return rc;
}

static int write_group(const struct job *job, struct buf *b, const int *ranks,
		       int count)
{
	int rc;

	if (ranks == PMI_GROUP_WORLD)
		return buf_puts(b, "WORLD");
	if (ranks == PMI_GROUP_NODE)
		return buf_puts(b, "NODE");
	rc = check_list(job, ranks, count);
	return rc ? rc : write_list(b, ranks, count);
}

static int enter(struct job *job, const int *ranks, int count, int tag)
{
	struct buf text;
	int rc;

	buf_init(&text, GROUP_TEXT_MAX);
	rc = write_group(job, &text, ranks, count);
	if (!rc)
		rc = buf_printf(&text, ":%d", tag);
	if (!rc)
		rc = job->ops->barrier_group(job, buf_cstr(&text), tag);
	buf_free(&text);
	return rc;
}

int barrier_group(struct job *job, const int *ranks, int count, const char *tag)
{
	int rc;

	if (ranks == PMI_GROUP_WORLD && !tag)
		return kvs_fence(job);
	if (!job->groups)
		return -ENOTSUP;
	if (ranks == PMI_GROUP_SELF)
		return 0;
	rc = enter(job, ranks, count, tag_number(tag));
	if (!rc)
		atomic_fetch_add(&job->groups_done, 1);
	return rc;
}
