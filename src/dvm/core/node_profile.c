/* SPDX-License-Identifier: BSD-3-Clause */
/* Environments and directories that parts of a node share. */
#include "dvm/core/node_private.h"

#include <errno.h>
#include <stdlib.h>

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
	if (p->told)
		n->ops.forget(n->arg, p->msg.number);
	free(p->bytes);
	free(p);
}

size_t node_profile_tell(struct dvm_node *n, struct profile *p)
{
	if (p->told)
		return 0;
	p->told = true;
	n->ops.profile(n->arg, &p->msg);
	return p->msg.cwd.len + p->msg.env.len;
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
		p->bytes = dvm_profile_copy(&p->msg, m);
	if (!p || !p->bytes) {
		free(p);
		return -ENOMEM;
	}
	p->number = m->number;
	p->msg.number = n->next_profile++;
	HASH_ADD(hh, n->profiles, number, sizeof(p->number), p);
	if (p->hh.tbl)
		return 0;
	free(p->bytes);
	free(p);
	return -ENOMEM;
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
