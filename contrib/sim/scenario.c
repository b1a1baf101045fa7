/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenario files: lines, sections, and what must fit together. */
#include "scenario.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "scenario_keys.h"

struct reader {
	struct scenario *s;
	const char *name;     /* of the file, or of an option */
	char *error;
	unsigned int line;
	const char *section; /* NULL: none yet */
	uint64_t seen[SCENARIO_KEYS_MAX / 64 + 1];
};

static int fail(struct reader *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void scenario_at(char out[SCENARIO_AT_MAX], const char *name, unsigned int line)
{
	if (line)
		snprintf(out, SCENARIO_AT_MAX, "%s:%u", name, line);
	else
		snprintf(out, SCENARIO_AT_MAX, "%s", name);
}

static int fail(struct reader *r, const char *fmt, ...)
{
	char at[SCENARIO_AT_MAX];
	va_list ap;
	int n;

	scenario_at(at, r->name, r->line);
	n = snprintf(r->error, SCENARIO_ERROR_MAX, "%s: ", at);
	va_start(ap, fmt);
	vsnprintf(r->error + n, SCENARIO_ERROR_MAX - n, fmt, ap);
	va_end(ap);
	return -1;
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

static void cut_comment(char *text)
{
	text[strcspn(text, "#;")] = '\0';
}

static int read_section(struct reader *r, char *line)
{
	char *end = strchr(line, ']');

	if (!end || end[1])
		return fail(r, "a section is a name in brackets, as [step]");
	*end = '\0';
	r->section = keys_section(trim(line + 1));
	if (!r->section)
		return fail(r, "there is no section '%s'; the sections are %s",
			    line + 1, KEYS_SECTIONS);
	return 0;
}

/* Only some keys may come again. */
static bool come_again(struct reader *r, int key)
{
	bool again = r->seen[key / 64] >> (key % 64) & 1;

	r->seen[key / 64] |= UINT64_C(1) << (key % 64);
	return again && !keys_repeat(key);
}

static int read_pair(struct reader *r, char *line)
{
	char *equals = strchr(line, '='), *key = line, *value;
	char names[SCENARIO_ERROR_MAX / 2];
	const char *allowed;
	int index;

	if (!equals)
		return fail(r, "'%s' is neither a [section] nor key = value",
			    line);
	*equals = '\0';
	key = trim(key);
	value = trim(equals + 1);
	if (!r->section)
		return fail(r, "%s: comes before the first [section]", key);
	index = keys_find(r->section, key);
	if (index < 0)
		return fail(r, "%s: no key of [%s]; its keys are %s", key,
			    r->section, keys_names(r->section, names,
						   sizeof(names)));
	if (come_again(r, index))
		return fail(r, "%s: is given twice", key);
	if (!keys_set(r->s, index, value, r->line, &allowed))
		return fail(r, "%s: allowed is %s", key, allowed);
	return 0;
}

static int read_line(struct reader *r, char *line)
{
	if (strlen(line) > SCENARIO_LINE_MAX)
		return fail(r, "a line may have %d bytes", SCENARIO_LINE_MAX);
	cut_comment(line);
	line = trim(line);
	if (!*line)
		return 0;
	return *line == '[' ? read_section(r, line) : read_pair(r, line);
}

/* ---- the whole ---- */

/* The most that an uneven layout can come to. */
static uint64_t ranks_at_most(const struct scenario *s)
{
	return s->nodes * (s->layout == RANKS_UNEVEN ?
			   2 * s->ranks_per_node - 1 : s->ranks_per_node);
}

/* The line of the later of two keys of [step]; 0: neither is in the file. */
static unsigned int line_of(const struct scenario *s, const char *a,
			    const char *b)
{
	unsigned int first = s->lines[keys_find("step", a)];
	unsigned int second = s->lines[keys_find("step", b)];

	return first > second ? first : second;
}

/* ---- DVMs ---- */

static int check_dvm_fault(struct reader *r, const struct scenario_fault *f)
{
	const struct dvm_params *d = &r->s->dvm;

	r->line = f->line;
	if ((f->kind != FAULT_NODE && f->kind != FAULT_HEAD) || f->in_phase)
		return fail(r, "%s: with a [workload], allowed are node and head, at a time",
			    scenario_fault_name(f->kind));
	if (f->kind == FAULT_NODE && f->a >= d->nodes)
		return fail(r, "node: there is no node %u, allowed is 0 to %llu", f->a,
			    (unsigned long long)d->nodes - 1);
	if (f->kind == FAULT_HEAD && (!f->a || f->a > d->dvms))
		return fail(r, "head: there is no DVM %u, allowed is 1 to %llu", f->a,
			    (unsigned long long)d->dvms);
	if (f->resumes && !d->journal)
		return fail(r, "head: resume needs journal = yes in [dvm]");
	return 0;
}

static int check_dvm_slow(struct reader *r, const struct scenario_slow *f)
{
	r->line = f->line;
	if (f->link)
		return fail(r, "slow_link: with a [workload], allowed is slow_node");
	if (f->a >= r->s->dvm.nodes)
		return fail(r, "slow_node: there is no node %u, allowed is 0 to %llu", f->a,
			    (unsigned long long)r->s->dvm.nodes - 1);
	return 0;
}

static int check_dvm(struct reader *r)
{
	const struct scenario *s = r->s;
	int rc = 0;

	r->line = s->lines[keys_find("dvm", "dvms")];
	if (s->dvm.dvms > s->dvm.nodes)
		return fail(r, "dvms: %llu are more than the nodes, %llu",
			    (unsigned long long)s->dvm.dvms,
			    (unsigned long long)s->dvm.nodes);
	r->line = s->lines[keys_find("workload", "file")];
	if (*s->tasks_file && s->nworkload)
		return fail(r, "file: a workload has a file, or lines of tasks, and not both");
	r->line = 0;
	if (s->nops)
		return fail(r, "run: a scenario with a [workload] has no operations");
	for (uint32_t i = 0; !rc && i < s->nfaults; i++)
		rc = check_dvm_fault(r, &s->faults[i]);
	for (uint32_t i = 0; !rc && i < s->nslow; i++)
		rc = check_dvm_slow(r, &s->slow[i]);
	return rc;
}

/* ---- steps ---- */

static int check_size(struct reader *r)
{
	const struct scenario *s = r->s;

	r->line = line_of(s, "nodes", "ranks_per_node");
	if (ranks_at_most(s) > LAYOUT_RANKS_MAX)
		return fail(r, "nodes, ranks_per_node: %llu ranks are more than %u",
			    (unsigned long long)ranks_at_most(s),
			    LAYOUT_RANKS_MAX);
	r->line = 0;
	if (!s->nops)
		return fail(r, "run: [operations] must name one or more");
	return 0;
}

static int check_protocol(struct reader *r)
{
	const struct scenario *s = r->s;

	for (uint16_t i = 0; i < s->nops; i++) {
		if (s->protocol != PROTOCOL_MPI_PMI2 || s->ops[i].kind != OP_RING)
			continue;
		r->line = s->ops[i].line;
		return fail(r, "run: protocol = mpi-pmi2 has no model of a ring, which takes a tree of its own; allowed are the other operations");
	}
	return 0;
}

static int check_store(struct reader *r)
{
	const struct scenario *s = r->s;

	for (uint16_t i = 0; i < s->nops; i++) {
		bool share = s->ops[i].kind == OP_SHARE;

		r->line = s->ops[i].line;
		if (share && s->protocol != PROTOCOL_STORE)
			return fail(r, "run: a share needs protocol = store");
		if (s->protocol == PROTOCOL_STORE && !share && s->ops[i].kind != OP_COMPUTE)
			return fail(r, "run: protocol = store has no %s; allowed is share or compute",
				    scenario_op_name(&s->ops[i]));
	}
	return 0;
}

static int check_groups(struct reader *r)
{
	const struct scenario *s = r->s;

	for (uint16_t i = 0; i < s->nops; i++) {
		if (s->ops[i].kind != OP_GROUP)
			continue;
		r->line = s->ops[i].line;
		if (s->protocol != PROTOCOL_PMI2X || s->clients != CLIENTS_NONE)
			return fail(r, "run: a group needs protocol = pmi2x and clients = none");
		if ((s->nodes - 1) / s->ops[i].every >= SCENARIO_GROUP_MAX)
			return fail(r, "run: group %u has more than %u members; allowed is a larger step between their nodes",
				    s->ops[i].every, SCENARIO_GROUP_MAX);
	}
	return 0;
}

static int check_clients(struct reader *r)
{
	const struct scenario *s = r->s;
	const struct scenario_op *op;
	const char *allowed;

	r->line = line_of(s, "clients", "protocol");
	if (s->clients == CLIENTS_NONE)
		return 0;
	if (s->protocol != PROTOCOL_PMI2X)
		return fail(r, "clients: allowed is none, with protocol = %s",
			    scenario_protocol_name(s->protocol));
	op = scenario_unable(s, s->clients, &allowed);
	if (!op)
		return 0;
	r->line = op->line;
	return fail(r, "run: clients = %s cannot carry out %s %u with keys of %llu bytes; allowed is %s",
		    scenario_clients_name(s->clients), scenario_op_name(op),
		    op->bytes, (unsigned long long)s->key_bytes, allowed);
}

static int check_fault(struct reader *r, const struct scenario_fault *f)
{
	const struct scenario *s = r->s;

	r->line = f->line;
	if (f->kind == FAULT_HEAD)
		return fail(r, "head: only a scenario with a [workload] has heads");
	if (f->kind == FAULT_RANK && s->layout != RANKS_UNEVEN &&
	    f->a >= s->nodes * s->ranks_per_node)
		return fail(r, "rank: there is no rank %u, allowed is 0 to %llu",
			    f->a, (unsigned long long)
			    (s->nodes * s->ranks_per_node - 1));
	if (f->kind != FAULT_RANK &&
	    (f->a >= s->nodes || (f->kind == FAULT_LINK && f->b >= s->nodes)))
		return fail(r, "%s: there is no node %u, allowed is 0 to %llu",
			    scenario_fault_name(f->kind),
			    f->a >= s->nodes ? f->a : f->b,
			    (unsigned long long)s->nodes - 1);
	if (f->in_phase && f->phase >= s->nops)
		return fail(r, "%s: there is no operation %u, allowed is 1 to %u",
			    scenario_fault_name(f->kind), f->phase + 1,
			    s->nops);
	return 0;
}

static int check_slow(struct reader *r, const struct scenario_slow *f)
{
	uint64_t n = r->s->nodes;

	r->line = f->line;
	if (f->a < n && (!f->link || f->b < n))
		return 0;
	return fail(r, "%s: there is no node %u, allowed is 0 to %llu",
		    f->link ? "slow_link" : "slow_node",
		    f->a >= n ? f->a : f->b, (unsigned long long)n - 1);
}

int scenario_check(const struct scenario *s, char error[SCENARIO_ERROR_MAX])
{
	struct scenario copy = *s; /* the reader's is not const */
	struct reader r = { .s = &copy, .name = s->name, .error = error };
	int rc = scenario_is_dvm(s) ? check_dvm(&r) : check_size(&r);

	if (scenario_is_dvm(s))
		return rc;
	if (!rc)
		rc = check_protocol(&r);
	if (!rc)
		rc = check_store(&r);
	if (!rc)
		rc = check_groups(&r);
	if (!rc)
		rc = check_clients(&r);
	for (uint32_t i = 0; !rc && i < s->nfaults; i++)
		rc = check_fault(&r, &s->faults[i]);
	for (uint32_t i = 0; !rc && i < s->nslow; i++)
		rc = check_slow(&r, &s->slow[i]);
	return rc;
}

/* ---- calibrations ---- */

int scenario_check_costs(const struct scenario *s, char error[SCENARIO_ERROR_MAX])
{
	struct reader r = { .name = s->name, .error = error };
	bool any = false;

	for (int key = 0; keys_name(key); key++) {
		if (!s->lines[key])
			continue;
		r.line = s->lines[key];
		if (!keys_of_machine(key))
			return fail(&r, "%s: a calibration has keys of [network], [node] and [dvm] only",
				    keys_name(key));
		any = true;
	}
	return any ? 0 : fail(&r, "no costs are in it: pmi2x sim calibrate writes calibrations");
}

int scenario_parse(struct scenario *s, const char *name, char *text,
		   char error[SCENARIO_ERROR_MAX])
{
	struct reader r = { .s = s, .name = s->name, .error = error };
	int rc = 0;

	snprintf(s->name, sizeof(s->name), "%s", name);
	while (!rc && text) {
		char *line = text, *end = strchr(text, '\n');

		text = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		r.line++;
		rc = read_line(&r, line);
	}
	return rc;
}

int scenario_set(struct scenario *s, char *pair, char error[SCENARIO_ERROR_MAX])
{
	struct reader r = { .s = s, .name = "--set", .error = error };

	r.section = keys_section_of(pair, scenario_is_dvm(s) ? "dvm" : "step");
	if (!r.section)
		return fail(&r, "'%s' does not begin with a key of a scenario and =",
			    pair);
	return read_pair(&r, pair);
}
