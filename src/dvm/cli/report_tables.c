/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm report --tables: a line for each run: its heads, and its tasks. */
#include <stdio.h>

#include "dvm/cli/dvm.h"
#include "dvm/cli/report.h"

#define NAME_WIDTH 24

/* The nodes that a head had, of the largest number. */
static void add_most(const struct history *h, struct journal_nodes *sum)
{
	struct journal_nodes most = { 0 };

	for (size_t i = 0; i < h->nnodes; i++)
		if (h->nodes[i].nodes > most.nodes)
			most = h->nodes[i];
	sum->nodes += most.nodes;
	sum->slots += most.slots;
	sum->gpus += most.gpus;
}

struct journal_nodes report_most_nodes(const struct report *r)
{
	struct journal_nodes sum = { 0 };

	for (size_t i = 0; i < r->n; i++)
		add_most(&r->histories[i], &sum);
	return sum;
}

static size_t count_tasks(const struct report *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->histories[i].ntasks;
	return n;
}

static bool is_simulated(const struct report *r)
{
	bool simulated = false;

	for (size_t i = 0; i < r->n; i++)
		simulated |= r->histories[i].simulated;
	return simulated;
}

static void print_name(const struct report *r)
{
	printf("%-*s %-9s %5u %5zu %9u ", NAME_WIDTH, r->dir,
	       is_simulated(r) ? "simulated" : "real", report_most_nodes(r).nodes, r->n,
	       report_most_nodes(r).nodes / (unsigned)r->n);
}

static void print_seconds(size_t known, double seconds)
{
	if (known)
		printf(" %9.4f", seconds);
	else
		printf(" %9s", "-");
}

/* Heads start together, so the longest start is that of all. */
static void print_heads(const struct report *r)
{
	const struct history_stages *s = &r->figures.stages;

	print_name(r);
	print_seconds(s->starts, s->start);
	print_seconds(s->stops, s->stop);
	print_seconds(s->starts, s->longest_start);
	putchar('\n');
}

static void print_part(double part, double of)
{
	if (of > 0)
		printf(" %6.1f", 100 * part / of);
	else
		printf(" %6s", "-");
}

static void print_tasks(const struct report *r)
{
	const struct history_figures *f = &r->figures;
	const struct history_times *t = &f->setup;

	print_name(r);
	printf("%8zu", count_tasks(r));
	print_seconds(f->stages.starts, f->stages.longest_start);
	print_seconds(f->last_ns > f->first_ns, (double)(f->last_ns - f->first_ns) / 1e9);
	print_seconds(t->count, t->mean);
	print_seconds(t->count, t->median);
	print_seconds(t->count, t->q3);
	print_part(f->used, f->there);
	print_part(f->gpus_used, f->gpus_there);
	printf(" %7zu %7zu\n", f->most.setup, f->most.running);
}

void report_tables(const struct report *runs, size_t n)
{
	printf("%-*s %-9s %5s %5s %9s  %9s %9s %9s\n", NAME_WIDTH, "RUN", "", "NODES", "DVMS",
	       "DVM NODES", "STARTUP", "END", "ALL UP");
	for (size_t i = 0; i < n; i++)
		print_heads(&runs[i]);
	printf("\n%-*s %-9s %5s %5s %9s %8s %9s %9s %9s %9s %9s %6s %6s %7s %7s\n", NAME_WIDTH, "RUN", "",
	       "NODES", "DVMS", "DVM NODES", "TASKS", "ALL UP", "TTX", "SETUP", "MEDIAN", "Q3",
	       "SLOTS%", "GPUS%", "SETUP", "RUNNING");
	for (size_t i = 0; i < n; i++)
		print_tasks(&runs[i]);
}
