/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Complete output of parts that print more than the tails hold. The host writes it to files
 * in the directory of the profile.
 *
 * Parts of a task over nodes have files from the first byte on, since the task's result has
 * the tails of one part. Only the standard output of rank 0's part is treated as that of
 * other tasks, as most MPI programs print nothing else. So that it stays in the result, parts
 * with a file for theirs report no tail of it.
 */
#include "dvm/core/node_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 64

/* The line or number of the task, and which part of it this is. */
static void make_name(const struct part *p, char name[NAME_MAX_BYTES])
{
	int n = snprintf(name, NAME_MAX_BYTES, "%" PRIu64, p->line ? p->line : p->task);

	if (p->first_rank)
		snprintf(name + n, NAME_MAX_BYTES - (size_t)n, ".r%" PRIu32, p->first_rank);
}

static void begin(struct dvm_node *n, struct part *p)
{
	char name[NAME_MAX_BYTES];
	const struct node_keep what = {
		.dir = p->profile->msg.outputs.data, .name = name,
		.umask = p->profile->msg.limits.umask,
	};
	int rc;

	p->keeps = calloc(1, sizeof(*p->keeps));
	if (!p->keeps)
		return; /* the next piece tries again, and the file lacks this one */
	make_name(p, name);
	rc = n->ops.keep_output(n->arg, p->number, &what);
	p->keeps->refused = rc;
	if (rc)
		snprintf(p->keeps->why, sizeof(p->keeps->why), "no process can write it: %s",
			 strerror(-rc));
}

static bool is_for_file(const struct dvm_node *n, const struct part *p, int fd, size_t len)
{
	if (!n->ops.keep_output || !p->profile->msg.outputs.len)
		return false;
	if (p->held.nodes > 1 && (p->first_rank || fd == 2))
		return true;
	return p->tails[fd - 1].len + len > DVM_TAIL_MAX;
}

void part_keep(struct dvm_node *n, struct part *p, int fd, const void *data, size_t len)
{
	const struct tail *t = &p->tails[fd - 1];

	if (!p->keeps && is_for_file(n, p, fd, len))
		begin(n, p);
	if (!p->keeps || p->keeps->refused)
		return;
	if (!p->keeps->kept[fd - 1] && !is_for_file(n, p, fd, len))
		return;
	if (!p->keeps->kept[fd - 1] && t->len)
		n->ops.write_output(n->arg, p->number, fd, t->bytes, t->len);
	p->keeps->kept[fd - 1] = true;
	n->ops.write_output(n->arg, p->number, fd, data, len);
}

bool part_waits_for_files(struct dvm_node *n, struct part *p)
{
	if (!p->keeps || p->keeps->refused)
		return false;
	p->keeps->waits = true;
	n->ops.end_output(n->arg, p->number);
	return true;
}

void part_note_files(struct part *p)
{
	const struct kept_output *k = p->keeps;

	if (!k)
		return;
	p->end.files = (struct dvm_bytes){ k->files, k->files_len };
	p->end.unkept = (struct dvm_bytes){ k->why, strlen(k->why) };
	if (p->first_rank && k->kept[0] && k->files_len && !*k->why)
		p->end.out.len = 0;
}

void dvm_node_kept(struct dvm_node *n, uint32_t part, const struct node_kept *kept,
		   struct dvm_time now)
{
	struct part *p = node_part(n, part);

	n->now = now;
	if (!p || !p->keeps || !p->keeps->waits)
		return;
	if (kept->files.len && kept->files.len <= sizeof(p->keeps->files)) {
		memcpy(p->keeps->files, kept->files.data, kept->files.len);
		p->keeps->files_len = kept->files.len;
	}
	if (kept->why)
		snprintf(p->keeps->why, sizeof(p->keeps->why), "%s", kept->why);
	part_end_kept(n, p);
}
