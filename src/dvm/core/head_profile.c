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
	buf_free(&p->env);
	free(p->sent);
	free(p);
}

struct head_profile *profile_define(struct dvm_head *h, const char *id,
				    const char *cwd, struct buf *env,
				    const struct dvm_limits *limits)
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
	if (!p->id || !p->cwd) {
		profile_free(p);
		return NULL;
	}
	p->env = *env;
	p->limits = *limits;
	buf_init(env, env->limit);
	p->number = h->next_profile++;
	p->users = 1;
	HASH_ADD_KEYPTR(hh, h->profiles, p->id, strlen(p->id), p);
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

static int limit_of_name(const char *name)
{
	int i = 0;

	while (i < DVM_LIMITS && strcmp(name, dvm_limit_names[i]))
		i++;
	return i;
}

const char *profile_read_limits(json_t *json, struct dvm_limits *out)
{
	json_t *mask = json_object_get(json, "umask"), *value;
	json_t *limits = json_object_get(json, "limits");
	json_int_t bits = json_integer_value(mask);
	const char *name;

	memset(out, 0, sizeof(*out));
	if (mask && (!json_is_integer(mask) || bits < 0 || bits > 0777))
		return "\"umask\" of a profile must be a number from 0 to 511";
	out->umask = mask ? (uint32_t)bits | DVM_UMASK_GIVEN : 0;
	if (limits && !json_is_object(limits))
		return "\"limits\" of a profile must be an object";
	json_object_foreach(limits, name, value) {
		int i = limit_of_name(name);

		if (i == DVM_LIMITS || !json_is_integer(value))
			return "\"limits\" of a profile: each is the name of a limit, as NOFILE, and a number, or -1 for none";
		out->given |= 1u << i;
		out->soft[i] = json_integer_value(value) < 0 ? DVM_LIMIT_NONE :
			       (uint64_t)json_integer_value(value);
	}
	return NULL;
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
		},
	};

	if (note_sent(h, p, node))
		head_queue_msg(h, node, &m);
}
