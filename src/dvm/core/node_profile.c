/* SPDX-License-Identifier: BSD-3-Clause */
/* Environments and directories that parts of a node share. */
#include "dvm/core/node_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct profile *node_profile_find(struct dvm_node *n, uint32_t number)
{
	struct profile *p;

	HASH_FIND(hh, n->profiles, &number, sizeof(number), p);
	return p;
}

static void drop(struct dvm_node *n, struct profile *p)
{
	if (p->parts || !p->forgotten)
		return;
	if (!p->old)
		HASH_DEL(n->profiles, p);
	free(p->bytes);
	free(p);
}

void node_profile_release(struct dvm_node *n, struct profile *p)
{
	p->parts--;
	drop(n, p);
}

int node_profile_add(struct dvm_node *n, const struct dvm_profile_msg *m)
{
	struct profile *p;

	if (node_profile_find(n, m->number))
		return 0;
	p = calloc(1, sizeof(*p));
	if (p)
		p->bytes = malloc(m->cwd.len + m->env.len);
	if (!p || !p->bytes) {
		free(p);
		return -ENOMEM;
	}
	memcpy(p->bytes, m->cwd.data, m->cwd.len);
	if (m->env.len)
		memcpy(p->bytes + m->cwd.len, m->env.data, m->env.len);
	p->number = m->number;
	p->msg = *m;
	p->msg.cwd.data = p->bytes;
	p->msg.env.data = p->bytes + m->cwd.len;
	HASH_ADD(hh, n->profiles, number, sizeof(p->number), p);
	return 0;
}

void node_profile_forget(struct dvm_node *n, uint32_t number)
{
	struct profile *p = node_profile_find(n, number);

	if (!p)
		return;
	p->forgotten = true;
	drop(n, p);
}

void node_profiles_forget(struct dvm_node *n)
{
	struct profile *p, *next;

	HASH_ITER(hh, n->profiles, p, next) {
		HASH_DEL(n->profiles, p);
		p->forgotten = p->old = true;
		drop(n, p);
	}
}
