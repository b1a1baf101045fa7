/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the layout of a step out of Slurm's launch message. */
#include "slurm_compat.h"

#include <stdlib.h>
#include <string.h>

#include "step_layout.h"

/* One form of layout for plain and het steps; points into Slurm's record. */
struct raw_layout {
	const char *node_list;
	uint32_t nnodes;
	uint32_t ntasks;
	const uint16_t *counts;  /* tasks of each node */
	uint32_t *const *ranks;  /* of each node */
	uint32_t task_offset;    /* of this component's tasks */
};

static bool is_het(const stepd_step_rec_t *step)
{
	return step->het_job_offset != NO_VAL;
}

static void read_raw(struct raw_layout *raw, const stepd_step_rec_t *step)
{
	if (is_het(step)) {
		raw->node_list = step->het_job_node_list;
		raw->nnodes = step->het_job_nnodes;
		raw->ntasks = step->het_job_ntasks;
		raw->counts = step->het_job_task_cnts;
		raw->ranks = step->het_job_tids;
		raw->task_offset = step->het_job_task_offset;
	} else {
		raw->node_list = step->msg->complete_nodelist;
		raw->nnodes = step->msg->nnodes;
		raw->ntasks = step->msg->ntasks;
		raw->counts = step->msg->tasks_to_launch;
		raw->ranks = step->msg->global_task_ids;
		raw->task_offset = 0;
	}
}

/*
 * The sums say whether the record is what we think it is: with the headers of
 * another Slurm they would not hold.
 */
static const char *check_raw(const struct raw_layout *raw,
			     const stepd_step_rec_t *step)
{
	uint64_t sum = 0;

	if (!raw->node_list || !raw->counts || !raw->ranks || !raw->nnodes ||
	    raw->nnodes > LAYOUT_NODES_MAX)
		return "the step's node list or task counts are missing";
	for (uint32_t i = 0; i < raw->nnodes; i++)
		sum += raw->counts[i];
	if (sum != raw->ntasks)
		return "the step's task counts do not add up";
	if (!is_het(step) && (step->nnodes != raw->nnodes ||
			      step->ntasks != raw->ntasks))
		return "the step's record differs from its launch message";
	return NULL;
}

static int read_names(struct step_layout *l, const char *node_list)
{
	slurm_hostlist hosts = hostlist_create(node_list);
	int rc = -EINVAL;

	if (!hosts || hostlist_count(hosts) != (int)l->nnodes)
		goto out;
	rc = -ENOMEM;
	l->names = calloc(l->nnodes, sizeof(*l->names));
	if (!l->names)
		goto out;
	for (uint32_t i = 0; i < l->nnodes; i++) {
		l->names[i] = hostlist_shift(hosts);
		if (!l->names[i])
			goto out;
	}
	rc = 0;
out:
	if (hosts)
		hostlist_destroy(hosts);
	return rc;
}

static bool has_rank(const struct raw_layout *raw, uint32_t node, uint32_t rank)
{
	for (uint32_t i = 0; i < raw->counts[node]; i++)
		if (raw->ranks[node][i] == rank)
			return true;
	return false;
}

/*
 * Het steps are sorted by node name, so only name and ranks tell which node
 * this is; two components may even share one.
 */
static int find_self(struct step_layout *l, const struct raw_layout *raw,
		     const stepd_step_rec_t *step)
{
	uint32_t rank = step->task[0]->gtid + raw->task_offset;

	for (uint32_t i = 0; i < l->nnodes; i++) {
		if (!strcmp(l->names[i], step->node_name) &&
		    raw->counts[i] == step->node_tasks &&
		    has_rank(raw, i, rank)) {
			l->node_id = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int make_layout(struct step_layout *l, const struct raw_layout *raw)
{
	uint32_t *counts = calloc(raw->nnodes, sizeof(*counts));
	int rc = -ENOMEM;

	if (!counts)
		return rc;
	for (uint32_t i = 0; i < raw->nnodes; i++)
		counts[i] = raw->counts[i];
	rc = layout_create(&l->layout, raw->nnodes, raw->ntasks, counts,
			   (const uint32_t *const *)raw->ranks);
	free(counts);
	return rc;
}

int step_layout_read(struct step_layout *out, const stepd_step_rec_t *step,
		     const char **why)
{
	struct raw_layout raw;
	int rc;

	memset(out, 0, sizeof(*out));
	*why = "the step has no tasks here";
	if (!step->msg || !step->node_name || !step->node_tasks || !step->task)
		return -EINVAL;
	read_raw(&raw, step);
	*why = check_raw(&raw, step);
	if (*why)
		return -EINVAL;
	out->nnodes = raw.nnodes;
	*why = "the step's node list does not match its task counts";
	rc = read_names(out, raw.node_list);
	if (rc)
		goto fail;
	*why = "this node is not in the step's node list";
	rc = find_self(out, &raw, step);
	if (rc)
		goto fail;
	*why = "the step's task numbers are no partition";
	rc = make_layout(out, &raw);
	if (rc)
		goto fail;
	return 0;
fail:
	step_layout_free(out);
	return rc;
}

void step_layout_free(struct step_layout *l)
{
	if (l->layout)
		layout_destroy(l->layout);
	for (uint32_t i = 0; l->names && i < l->nnodes; i++)
		free(l->names[i]);
	free(l->names);
	memset(l, 0, sizeof(*l));
}
