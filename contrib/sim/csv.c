/* SPDX-License-Identifier: BSD-3-Clause */
/* CSV: a line for each operation, or for each node and link in each of them. */
#include "report.h"

#define COLUMNS \
	"scenario,protocol,nodes,ranks,ranks_per_node,layout,tree_width," \
	"clients,piece,seed,number,operation,value_bytes,keys,entered,succeeded," \
	"failed,first_entry_s,last_entry_s,first_exit_s,last_exit_s,time_s," \
	"after_last_entry_s,messages,bytes,node_messages_min," \
	"node_messages_median,node_messages_max,node_bytes_min," \
	"node_bytes_median,node_bytes_max,node_sent_min,node_sent_median," \
	"node_sent_max,node_bytes_sent_max,node_values_max,links,link_messages_max," \
	"link_bytes_max,steps,path_steps,memory_min,memory_median,memory_max," \
	"queue_max,events\n"

/* The name comes from a command line: quoted. */
static void put_name(const char *name, FILE *out)
{
	fputc('"', out);
	for (; *name; name++) {
		if (*name == '"')
			fputc('"', out);
		fputc(*name, out);
	}
	fputc('"', out);
}

static void put_scenario(const struct sim *s, FILE *out)
{
	const struct scenario *sc = s->scenario;

	put_name(sc->name, out);
	fprintf(out, ",%s,%u,%u,%llu,%s,%u,%s,%llu,%llu,",
		scenario_protocol_name(sc->protocol), s->nnodes, s->nranks,
		(unsigned long long)sc->ranks_per_node,
		scenario_layout_name(sc->layout),
		s->protocol->star ? 0 : s->width,
		scenario_clients_name(sc->clients),
		(unsigned long long)sc->piece,
		(unsigned long long)sc->seed);
}

static void put_times(const struct phase *p, FILE *out)
{
	fprintf(out, "%u,%u,%u,%.12f,%.12f,%.12f,%.12f,%.12f,%.12f,",
		p->entered, p->succeeded, p->failed,
		units_seconds(p->first_entry), units_seconds(p->last_entry),
		units_seconds(p->first_exit), units_seconds(p->last_exit),
		units_seconds(p->last_exit - p->first_entry),
		units_seconds(p->last_exit - p->last_entry));
}

static void put_spread(const struct spread *v, FILE *out)
{
	fprintf(out, "%llu,%llu,%llu,", (unsigned long long)v->min,
		(unsigned long long)v->median, (unsigned long long)v->max);
}

static int put_counts(const struct sim *s, uint32_t i, FILE *out)
{
	const struct phase *p = &s->phases[i];
	struct phase_stats st;

	if (stats_phase(s, i, &st))
		return -1;
	fprintf(out, "%llu,%llu,", (unsigned long long)p->messages,
		(unsigned long long)p->bytes);
	put_spread(&st.messages, out);
	put_spread(&st.bytes, out);
	put_spread(&st.sent, out);
	fprintf(out, "%llu,%llu,%llu,%u,%llu,%u,%u,",
		(unsigned long long)st.bytes_sent.max,
		(unsigned long long)st.values.max,
		(unsigned long long)st.links, st.link_max.messages,
		(unsigned long long)st.link_max.bytes, p->steps,
		st.path_steps);
	return 0;
}

int report_csv(const struct sim *s, FILE *out)
{
	struct spread memory;

	if (stats_memory_spread(s, &memory))
		return -1;
	fputs(COLUMNS, out);
	for (uint32_t i = 0; i < s->nphases; i++) {
		const struct scenario_op *op = &s->scenario->ops[i];
		bool last = i + 1 == s->nphases;

		put_scenario(s, out);
		fprintf(out, "%u,%s,%u,%u,", last ? 0 : i + 1,
			last ? "leaving" : scenario_op_name(op),
			last ? 0 : op->bytes, last ? 0 : op->keys);
		put_times(&s->phases[i], out);
		if (put_counts(s, i, out))
			return -1;
		put_spread(&memory, out);
		fprintf(out, "%llu,%llu\n",
			(unsigned long long)stats_queue_max(s),
			(unsigned long long)s->handled);
	}
	return 0;
}

/* ---- every node and link ---- */

static void put_place(const struct sim *s, uint32_t phase, FILE *out)
{
	bool last = phase + 1 == s->nphases;

	fprintf(out, "%u,%s,", last ? 0 : phase + 1,
		last ? "leaving" : scenario_op_name(&s->scenario->ops[phase]));
}

static void put_end(const struct sim *s, const struct sim_node *n, FILE *out)
{
	if (n->position == s->nnodes)
		fputs("host,", out);
	else
		fprintf(out, "%u,", n->id);
}

static void put_node(const struct sim *s, uint32_t phase,
		     const struct sim_node *n, FILE *out)
{
	const struct node_count *c = stats_node(s, phase, n->position);

	put_place(s, phase, out);
	fputs("node,", out);
	put_end(s, n, out);
	fprintf(out, ",%u,%llu,%u,%llu\n", c->sent,
		(unsigned long long)c->bytes_sent, c->received,
		(unsigned long long)c->bytes_received);
}

static void put_link(const struct sim *s, uint32_t phase,
		     const struct sim_node *n, uint32_t slot, FILE *out)
{
	const struct link_count *l = stats_link(s, phase, n->position, slot);
	const struct sim_node *peer;

	if (!l->messages)
		return;
	peer = &s->nodes[n->parent];
	put_place(s, phase, out);
	fputs("link,", out);
	put_end(s, slot == 1 ? peer : n, out);
	put_end(s, slot == 1 ? n : peer, out);
	fprintf(out, "%u,%llu,,\n", l->messages, (unsigned long long)l->bytes);
}

int report_details(const struct sim *s, FILE *out)
{
	fputs("number,operation,what,node,to,messages_sent,bytes_sent,messages_received,bytes_received\n",
	      out);
	for (uint32_t phase = 0; phase < s->nphases; phase++)
		for (uint32_t p = 0; p < s->nhosts; p++) {
			const struct sim_node *n = &s->nodes[p];

			put_node(s, phase, n, out);
			for (uint32_t slot = 0; slot < LINK_SLOTS; slot++)
				put_link(s, phase, n, slot, out);
		}
	return 0;
}
