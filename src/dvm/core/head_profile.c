/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Environments that tasks share. A client names one and sends it once; a node gets it
 * before its first task that has it. It goes when no task has it and no client that is
 * connected has named it.
 */
#include "dvm/core/head_private.h"

#include <stdlib.h>
#include <string.h>

struct head_profile *profile_find(struct dvm_head *h, const char *id)
{
	struct head_profile *p;

	HASH_FIND_STR(h->profiles, id, p);
	return p;
}

static void profile_free(struct head_profile *p)
{
	free(p->id);
	free(p->cwd);
	free(p->outputs);
	buf_free(&p->input);
	buf_free(&p->env);
	free(p->sent);
	free(p);
}

struct head_profile *profile_define(struct dvm_head *h, const char *id,
				    const char *cwd, struct buf *env,
				    const struct dvm_limits *limits,
				    const struct profile_files *files)
{
	struct head_profile *p = profile_find(h, id);

	if (p) {
		p->users++;
		return p;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->id = strdup(id);
	p->cwd = strdup(cwd);
	buf_init(&p->input, DVM_INPUT_MAX);
	p->outputs = files->outputs ? strdup(files->outputs) : NULL;
	if (!p->id || !p->cwd || (files->outputs && !p->outputs) ||
	    buf_append(&p->input, files->input.data, files->input.len)) {
		profile_free(p);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, h->profiles, p->id, strlen(p->id), p);
	if (!p->hh.tbl) {
		profile_free(p);
		return NULL;
	}
	p->env = *env;
	p->limits = *limits;
	buf_init(env, env->limit);
	p->number = h->next_profile++;
	p->users = 1;
	return p;
}

void profile_release(struct dvm_head *h, struct head_profile *p)
{
	const struct dvm_msg m = {
		.type = DVM_FORGET, .profile.number = p ? p->number : 0,
	};

	if (!p || --p->users)
		return;
	for (uint32_t i = 0; i < p->nsent; i++)
		if (p->sent[i])
			head_queue_msg(h, i, &m);
	HASH_DEL(h->profiles, p);
	profile_free(p);
}

static bool note_sent(struct dvm_head *h, struct head_profile *p, uint32_t node)
{
	uint8_t *sent;

	if (node >= p->nsent) {
		sent = realloc(p->sent, h->options.nodes);
		if (!sent)
			return true; /* sent twice is harmless */
		memset(sent + p->nsent, 0, h->options.nodes - p->nsent);
		p->sent = sent;
		p->nsent = h->options.nodes;
	}
	if (p->sent[node])
		return false;
	p->sent[node] = 1;
	return true;
}

void profile_send(struct dvm_head *h, struct head_profile *p, uint32_t node)
{
	const struct dvm_msg m = {
		.type = DVM_PROFILE,
		.profile = {
			.number = p->number,
			.cwd = { p->cwd, strlen(p->cwd) + 1 },
			.env = { p->env.data, p->env.len },
			.limits = p->limits,
			.outputs = { p->outputs, p->outputs ? strlen(p->outputs) + 1 : 0 },
			.input = { p->input.data, p->input.len },
		},
	};

	if (note_sent(h, p, node))
		head_queue_msg(h, node, &m);
}
