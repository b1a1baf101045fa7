/* SPDX-License-Identifier: BSD-3-Clause */
/* A node that loses its head, and what it keeps for the next one (unacked_ends.h). */
#include "dvm/core/node_private.h"

#include <string.h>

static void say_held(struct dvm_node *n, const struct part *p)
{
	const struct dvm_msg m = { .type = DVM_HELD, .held = p->held };

	node_send(n, &m);
	if (p->failing)
		node_say(n, p, DVM_FAILING);
}

/* Queued messages are for the lost head: the next head gets REGISTER first. */
void node_adopt(struct dvm_node *n)
{
	const struct part *p;

	node_profiles_forget(n);
	buf_clear(&n->out);
	node_bulk_drop(n);
	node_set_alone(n, false);
	dvm_node_register(n, &n->is);
	for (p = n->parts; p; p = p->hh.next)
		say_held(n, p);
	if (kept_say(n->kept, &n->out))
		node_fail(n);
}

void node_done(struct dvm_node *n, const struct dvm_started *m)
{
	struct part *p = node_find_part(n, m->task, m->instance);

	if (p)
		p->keep = false; /* its head does not want the end */
	kept_remove(n->kept, m->task, m->instance);
}

void dvm_node_failed_late(struct dvm_node *n, uint64_t task, uint32_t instance,
			  const struct node_failure *f)
{
	const struct dvm_msg m = {
		.type = DVM_FAILED,
		.failed = { task, instance, f->status, f->rank, f->asked,
			    { f->why, strlen(f->why) } },
	};

	node_send(n, &m);
	if (kept_add_failed(n->kept, &m.failed))
		node_fail(n);
}
