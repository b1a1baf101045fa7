/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of simulated DVMs: a table, and a line for each task as CSV. */
#include "dvm_report.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static double part_of(struct dvm_sim *s, double part)
{
	return s->nstarts ? s->starts[(size_t)(part * (double)(s->nstarts - 1) + 0.5)] : 0;
}

static void report_losses(const struct dvm_sim *s, FILE *out)
{
	fprintf(out, "tasks that ran again               %12llu\n", (unsigned long long)s->again);
	fprintf(out, "tasks that were lost with a head   %12llu\n", (unsigned long long)s->lost);
	fprintf(out, "tasks that no head was left to take %11llu\n", (unsigned long long)s->unsubmitted);
}

void dvm_report_table(struct dvm_sim *s, FILE *out)
{
	const struct dvm_params *p = &s->scenario->dvm;
	double ttx = units_seconds(s->end_at - s->begin_at), sum = 0;
	double slots = (double)p->nodes * (double)p->slots * ttx;
	double gpus = (double)p->nodes * (double)p->gpus * ttx;
	struct dvm_traffic t;

	for (size_t i = 0; i < s->nstarts; i++)
		sum += s->starts[i];
	qsort(s->starts, s->nstarts, sizeof(*s->starts), by_value);
	fprintf(out, "simulated: %s: %llu nodes of %llu slots and %llu GPUs, %llu DVM%s, %llu tasks\n",
		s->scenario->name, (unsigned long long)p->nodes, (unsigned long long)p->slots,
		(unsigned long long)p->gpus, (unsigned long long)p->dvms,
		p->dvms == 1 ? "" : "s", (unsigned long long)s->ended);
	fprintf(out, "up, from the start of the daemons  %12.3f s\n", units_seconds(s->up_at));
	fprintf(out, "TTX, first submit to last end      %12.3f s\n", ttx);
	fprintf(out, "first submit to last exec          %12.3f s\n",
		s->last_start > s->begin_at ? units_seconds(s->last_start - s->begin_at) : 0);
	fprintf(out, "tasks a second                     %12.1f\n",
		ttx > 0 ? (double)s->ended / ttx : 0);
	fprintf(out, "slots used                         %12.2f %%\n",
		slots > 0 ? 100 * s->core_s / slots : 0);
	if (p->gpus)
		fprintf(out, "GPUs used                          %12.2f %%\n",
			gpus > 0 ? 100 * s->gpu_s / gpus : 0);
	fprintf(out, "placed to started: mean            %12.6f s\n",
		s->nstarts ? sum / (double)s->nstarts : 0);
	fprintf(out, "                   median, q3, p99 %12.6f %.6f %.6f s\n",
		part_of(s, 0.5), part_of(s, 0.75), part_of(s, 0.99));
	fprintf(out, "ranks at once, at most             %12llu\n", (unsigned long long)s->most);
	fprintf(out, "tasks that failed                  %12llu\n", (unsigned long long)s->failed);
	if (s->scenario->nfaults)
		report_losses(s, out);
	sim_heads_traffic(s, &t);
	fprintf(out, "messages, bytes, of head and nodes %12llu %llu\n",
		(unsigned long long)(t.messages - s->before.messages),
		(unsigned long long)(t.bytes - s->before.bytes));
}

void dvm_report_tasks(const struct dvm_sim *s, FILE *out)
{
	fputs("dvm,ranks,cores,gpus,nodes,seconds,submitted,placed,started,ended\n", out);
	for (size_t i = 0; i < s->nrows; i++) {
		const struct dvm_row *r = &s->rows[i];

		fprintf(out, "%u,%u,%u,%u,%u,%.6f,%.6f,%.6f,%.6f,%.6f\n", r->dvm + 1,
			r->task.ranks, r->task.cores, r->task.gpus, r->task.nodes,
			units_seconds(r->task.time), r->submitted, r->placed, r->started,
			r->ended);
	}
}
