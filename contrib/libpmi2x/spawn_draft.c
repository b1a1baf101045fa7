/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds spawn requests; reads the codes that come back. */
#include "spawn_draft.h"

#include <errno.h>
#include <stdlib.h>

#include "job.h"
#include "libutil/decimal.h"
#include "wire.h"

bool spawn_source_ok(const struct spawn_source *from)
{
	return from->count >= 1 && from->count <= SPAWN_COMMANDS_MAX &&
	       from->cmds && from->maxprocs;
}

static int draft_pairs(struct spawn_pair **out, uint32_t *count, int n, int max,
		       const void *from, spawn_pair_reader *read)
{
	if (n < 0 || n > max || (n && !from))
		return -EINVAL;
	if (n == 0)
		return 0;
	*out = calloc(n, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	*count = n;
	for (int i = 0; i < n; i++)
		(*out)[i] = read(from, i);
	return 0;
}

static int draft_args(const struct spawn_source *from, int i,
		      struct spawn_command *c)
{
	const char **argv = from->argvs ? from->argvs[i] : NULL;
	int argc = from->argcs ? from->argcs[i] : 0;

	while (from->counts_args && argv && argv[argc] && argc < SPAWN_ARGS_MAX)
		argc++;
	if (argc < 0 || (argc && !argv))
		return -EINVAL;
	c->argv = (char **)argv;
	c->argc = argc;
	return 0;
}

static int draft_command(const struct spawn_source *from, int i,
			 struct spawn_command *c)
{
	int rc = from->maxprocs[i] < 1 ? -EINVAL : draft_args(from, i, c);

	c->program = (char *)from->cmds[i];
	c->nprocs = from->maxprocs[i];
	if (rc || !from->info_sizes || !from->infos)
		return rc;
	return draft_pairs(&c->info, &c->ninfo, from->info_sizes[i],
			   SPAWN_INFO_MAX, from->infos[i], from->read_info);
}

int spawn_draft(const struct spawn_source *from, struct spawn_request **out)
{
	struct spawn_request *r = *out = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->commands = calloc(from->count, sizeof(*r->commands));
	if (!r->commands)
		return -ENOMEM;
	r->ncommands = from->count;
	rc = draft_pairs(&r->preput, &r->npreput, from->npreput,
			 SPAWN_PREPUT_MAX, from->preput, from->read_preput);
	for (int i = 0; !rc && i < from->count; i++)
		rc = draft_command(from, i, &r->commands[i]);
	return rc;
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
			errors[at] = 0;
			if (text && (!decimal_int(&text, &errors[at]) ||
				     *text++ != ','))
				text = NULL;
		}
}

int spawn_run(struct job *job, const struct spawn_request *r, char jobid[],
	      int jobid_size, int errors[])
{
	struct spawn_result result = { { NULL, 0 }, { NULL, 0 } };
	int rc = check(r);

	if (!rc)
		rc = job->ops->spawn(job, r, &result);
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
