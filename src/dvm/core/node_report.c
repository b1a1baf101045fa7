/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the parts of a node, for clients that ask. */
#include "dvm/core/node_private.h"

static void pack_rank(struct dvm_node *n, const struct part *p, uint32_t i,
		      struct buf *out)
{
	struct dvm_rank r = {
		.rank = p->first_rank + i,
		.process = p->ranks[i].runs ? p->ranks[i].process : 0,
		.state = i < p->started ? '-' : '+',
	};

	if (r.process)
		n->ops.look(n->arg, r.process, &r);
	(void)dvm_rank_pack(out, &r); /* without memory the rest is not shown */
}

void dvm_node_each_process(const struct dvm_node *n, uint32_t part,
			   void (*fn)(void *arg, uint64_t process), void *arg)
{
	const struct part *p = node_part(n, part);

	for (uint32_t i = 0; p && i < p->started; i++)
		if (p->ranks[i].runs)
			fn(arg, p->ranks[i].process);
}

static void tell_pmi(struct dvm_node *n, const struct part *p, const struct dvm_ask *about)
{
	struct dvm_msg m = {
		.type = DVM_TOLD, .told = { .about = *about, .what = DVM_TOLD_PMI },
	};
	struct buf status;

	buf_init(&status, DVM_TOLD_MAX);
	n->ops.pmi_status(n->arg, p->number, &status);
	m.told.data = (struct dvm_bytes){ status.data, status.len };
	node_send(n, &m);
	buf_free(&status);
}

void node_tell(struct dvm_node *n, const struct dvm_ask *about)
{
	const struct part *p = node_find_part(n, about->task, about->instance);
	struct dvm_msg m = {
		.type = DVM_TOLD,
		.told = { .about = *about, .what = DVM_TOLD_RANKS, .pmi = p && p->pmi },
	};
	struct buf ranks;

	if (p && p->keeps && !p->keeps->refused)
		m.told.file_stall_ms = n->ops.output_stall_ms(n->arg, p->number);
	buf_init(&ranks, DVM_TOLD_MAX);
	for (uint32_t i = 0; p && i < p->count; i++)
		pack_rank(n, p, i, &ranks);
	m.told.data = (struct dvm_bytes){ ranks.data, ranks.len };
	node_send(n, &m);
	buf_free(&ranks);
	if (m.told.pmi)
		tell_pmi(n, p, about);
}
