/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds spawn requests; reads the codes that come back. */
#include "job.h"

#include <errno.h>
#include <stdlib.h>

#include "api.h"

struct spawn_request *spawn_draft(int count)
{
	struct spawn_request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->commands = calloc(count, sizeof(*r->commands));
	if (!r->commands) {
		free(r);
		return NULL;
	}
	r->ncommands = count;
	return r;
}

struct spawn_pair *spawn_draft_pairs(struct spawn_request *r,
				     struct spawn_command *c, int n)
{
	struct spawn_pair *pairs = calloc(n, sizeof(*pairs));

	if (!pairs)
		return NULL;
	if (c) {
		c->info = pairs;
		c->ninfo = n;
	} else {
		r->preput = pairs;
		r->npreput = n;
	}
	return pairs;
}

void spawn_draft_free(struct spawn_request *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->ncommands; i++)
		free(r->commands[i].info);
	free(r->commands);
	free(r->preput);
	free(r);
}

static int check_pairs(const struct spawn_pair *pairs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!pairs[i].key || !pairs[i].value)
			return -EINVAL;
	return 0;
}

static int check_command(const struct spawn_command *c)
{
	if (!c->program || c->nprocs == 0 || c->argc > SPAWN_ARGS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < c->argc; i++)
		if (!c->argv[i])
			return -EINVAL;
	return check_pairs(c->info, c->ninfo);
}

static int check(const struct spawn_request *r)
{
	uint64_t procs = 0;

	for (uint32_t i = 0; i < r->ncommands; i++) {
		if (check_command(&r->commands[i]))
			return -EINVAL;
		procs += r->commands[i].nprocs;
	}
	if (procs > SPAWN_PROCS_MAX)
		return -EINVAL;
	return check_pairs(r->preput, r->npreput);
}

static void fill_errors(const struct spawn_request *r,
			const struct value *errcodes, int errors[])
{
	const char *text = errcodes->data;
	size_t at = 0;

	if (!errors)
		return;
	for (uint32_t i = 0; i < r->ncommands; i++)
		for (uint32_t p = 0; p < r->commands[i].nprocs; p++, at++) {
			char *end = NULL;

			errors[at] = text ? strtol(text, &end, 10) : 0;
			text = end && *end == ',' ? end + 1 : NULL;
		}
}

int spawn_run(struct session *s, const struct spawn_request *r, char jobid[],
	      int jobid_size, int errors[])
{
	struct spawn_result result = { { NULL, 0 }, { NULL, 0 } };
	int rc = check(r);

	if (!rc)
		rc = s->ops->spawn(s, r, &result);
	if (!rc)
		fill_errors(r, &result.errcodes, errors);
	if (!rc && jobid && jobid_size > 0 &&
	    !copy_text(jobid, jobid_size, result.jobid.data ?: "",
		       result.jobid.len))
		rc = -ENOBUFS;
	value_free(&result.jobid);
	value_free(&result.errcodes);
	return rc;
}
