/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of phases, and what determined their ends. */
#include "report.h"

#include <sys/resource.h>

uint64_t report_own_memory(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		return 0;
	return (uint64_t)usage.ru_maxrss << 10;
}

static void put_head(const struct sim *s, FILE *out)
{
	const struct scenario *sc = s->scenario;

	fprintf(out, "%s: %u nodes, %u ranks (%s), %s", sc->name, s->nnodes,
		s->nranks, scenario_layout_name(sc->layout),
		scenario_protocol_name(sc->protocol));
	if (sc->protocol == PROTOCOL_PMI2X)
		fprintf(out, ", tree width %u, clients %s",
			s->width, scenario_clients_name(sc->clients));
	else if (sc->protocol == PROTOCOL_STORE)
		fprintf(out, ", tree width %u", s->width);
	fputs("\n\n", out);
}

static void put_phase(const struct sim *s, FILE *out, uint32_t i,
		      const struct phase_stats *st)
{
	const struct scenario_op *op = &s->scenario->ops[i];
	const struct phase *p = &s->phases[i];
	char name[64], time[UNITS_TEXT], after[UNITS_TEXT], bytes[UNITS_TEXT];
	char most[UNITS_TEXT];

	snprintf(name, sizeof(name), "%u %s", i + 1, scenario_op_name(op));
	if (op->kind != OP_COMPUTE)
		snprintf(name, sizeof(name), "%u %s %u", i + 1,
			 scenario_op_name(op),
			 op->kind == OP_GROUP ? op->every : op->bytes);
	fprintf(out, "%-20s %10s %10s %9u %7u %11llu %9s %5llu/%llu/%llu %9s %5u\n",
		name, units_show_time(time, p->last_exit - p->first_entry),
		units_show_time(after, p->last_exit - p->last_entry),
		p->succeeded, p->failed, (unsigned long long)p->messages,
		units_show_bytes(bytes, p->bytes),
		(unsigned long long)st->messages.min,
		(unsigned long long)st->messages.median,
		(unsigned long long)st->messages.max,
		units_show_bytes(most, st->bytes.max), p->steps);
}

static void put_rest(const struct sim *s, FILE *out,
		     const struct phase_stats *st)
{
	const struct phase *p = &s->phases[s->nphases - 1];
	char bytes[UNITS_TEXT], most[UNITS_TEXT];

	if (!p->messages)
		return;
	fprintf(out, "%-20s %10s %10s %9s %7s %11llu %9s %5llu/%llu/%llu %9s %5u\n",
		"leaving, faults", "", "", "", "",
		(unsigned long long)p->messages,
		units_show_bytes(bytes, p->bytes),
		(unsigned long long)st->messages.min,
		(unsigned long long)st->messages.median,
		(unsigned long long)st->messages.max,
		units_show_bytes(most, st->bytes.max), p->steps);
}

/* A server has its memory to itself. */
static int put_memory(const struct sim *s, FILE *out)
{
	char a[UNITS_TEXT], b[UNITS_TEXT], c[UNITS_TEXT], own[UNITS_TEXT];
	struct spread memory;

	if (stats_memory_spread(s, &memory))
		return -1;
	fputc('\n', out);
	if (!s->servers && s->protocol != &protocol_store)
		fprintf(out, "memory of a node for data, at its largest: %s (median %s, least %s)\n",
			units_show_bytes(a, memory.max),
			units_show_bytes(b, memory.median),
			units_show_bytes(c, memory.min));
	fprintf(out, "sent by a node and not arrived, at most: %s\n",
		units_show_bytes(a, stats_queue_max(s)));
	fprintf(out, "simulated %s in %llu events; the simulator took %s\n",
		units_show_time(a, s->now), (unsigned long long)s->handled,
		units_show_bytes(own, report_own_memory()));
	return 0;
}

static void put_reasons(const struct sim *s, FILE *out)
{
	for (uint32_t i = 0; i < s->scenario->nops; i++)
		if (s->phases[i].failed)
			fprintf(out, "operation %u failed: %s\n", i + 1,
				s->phases[i].reason);
	if (s->reports)
		fprintf(out, "srun would say: %s\n", s->report);
}

int report_table(const struct sim *s, FILE *out)
{
	struct phase_stats st;

	put_head(s, out);
	fprintf(out, "%-20s %10s %10s %9s %7s %11s %9s %13s %9s %5s\n",
		"operation", "time", "last in", "ranks ok", "failed", "messages",
		"bytes", "of a node", "at most", "steps");
	for (uint32_t i = 0; i < s->nphases; i++) {
		if (stats_phase(s, i, &st))
			return -1;
		if (i + 1 < s->nphases)
			put_phase(s, out, i, &st);
		else
			put_rest(s, out, &st);
	}
	put_reasons(s, out);
	return put_memory(s, out);
}

/* ---- critical paths ---- */

static void put_step(const struct sim *s, FILE *out, const struct path *p,
		     const struct path *next)
{
	char at[UNITS_TEXT], busy[UNITS_TEXT];
	const struct sim_node *n = &s->nodes[p->position];

	fprintf(out, "    %10s  ", units_show_time(at, p->at));
	if (p->position == s->nnodes)
		fputs("the host", out);
	else
		fprintf(out, "node %u", n->id);
	if (p->rank != PATH_NO_RANK)
		fprintf(out, ", where rank %u enters", p->rank);
	if (next)
		fprintf(out, ", %s to the next",
			units_show_time(busy, next->at - p->at));
	fputc('\n', out);
}

/* The chain runs backwards: the k-th from its start. */
static const struct path *step_at(const struct path *p, uint32_t steps,
				  uint32_t k)
{
	while (++k < steps)
		p = p->from;
	return p;
}

static void put_path(const struct sim *s, FILE *out, uint32_t i, uint32_t most)
{
	const struct phase *p = &s->phases[i];
	uint32_t steps = path_steps_since(p->path, p->first_entry);
	char at[UNITS_TEXT];

	fprintf(out, "operation %u, ended by a chain of %u:\n", i + 1, steps);
	for (uint32_t k = 0; k < steps; k++) {
		if (k == most / 2 && steps > most) {
			fprintf(out, "    %10s  %u more\n", "...", steps - most);
			k += steps - most;
		}
		put_step(s, out, step_at(p->path, steps, k),
			 k + 1 < steps ? step_at(p->path, steps, k + 1) : NULL);
	}
	fprintf(out, "    %10s  the last rank goes on\n",
		units_show_time(at, p->last_exit));
}

void report_paths(const struct sim *s, FILE *out, uint32_t most)
{
	for (uint32_t i = 0; i < s->scenario->nops; i++)
		if (s->phases[i].path)
			put_path(s, out, i, most);
}
