/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of a scenario that are several words: operations and faults. */
#include <string.h>

#include "libshm/records.h"
#include "scenario.h"

#define SPACE " \t"

/* ---- operations ---- */

static const struct {
	const char *name;
	enum scenario_op_kind kind;
	bool nonblocking;
} op_names[] = {
	{ "fence", OP_FENCE, false },
	{ "ifence", OP_FENCE, true },
	{ "allgather", OP_ALLGATHER, false },
	{ "iallgather", OP_ALLGATHER, true },
	{ "ring", OP_RING, false },
	{ "group", OP_GROUP, false },
	{ "share", OP_SHARE, false },
	{ "compute", OP_COMPUTE, false },
};

#define OP_NAMES (sizeof(op_names) / sizeof(op_names[0]))

const char *scenario_op_name(const struct scenario_op *op)
{
	for (size_t i = 0; i < OP_NAMES; i++)
		if (op_names[i].kind == op->kind &&
		    op_names[i].nonblocking == op->nonblocking)
			return op_names[i].name;
	return "?";
}

static bool parse_kind(const char *word, struct scenario_op *op)
{
	for (size_t i = 0; word && i < OP_NAMES; i++)
		if (strcmp(word, op_names[i].name) == 0) {
			op->kind = op_names[i].kind;
			op->nonblocking = op_names[i].nonblocking;
			return true;
		}
	return false;
}

static bool count_of(const char *text, uint32_t min, uint32_t max,
		     uint32_t *out)
{
	uint64_t n;

	if (!text || !units_count(text, &n) || n < min || n > max)
		return false;
	*out = n;
	return true;
}

static bool parse_value(const char *word, struct scenario_op *op)
{
	uint64_t n;

	if (!word || !units_bytes(word, &n) || n > RECORD_VALUE_MAX)
		return false;
	op->bytes = n;
	return true;
}

static bool parse_first(char *word, struct scenario_op *op)
{
	return op->kind == OP_GROUP ?
		       count_of(word, 1, LAYOUT_NODES_MAX, &op->every) :
		       parse_value(word, op);
}

/* Words that may follow the bytes of a value; compute takes the rest of the line. */
static bool parse_options(struct scenario_op *op, uint32_t *times, char *rest)
{
	char *word;

	while ((word = strtok_r(NULL, SPACE, &rest))) {
		bool ok = false;

		if (strcmp(word, "compute") == 0 && op->nonblocking)
			return distribution_parse(rest, &op->compute);
		if (strcmp(word, "keys") == 0 &&
		    (op->kind == OP_FENCE || op->kind == OP_SHARE))
			ok = count_of(strtok_r(NULL, SPACE, &rest), 1, 1024,
				      &op->keys);
		else if (strcmp(word, "times") == 0)
			ok = count_of(strtok_r(NULL, SPACE, &rest), 1,
				      SCENARIO_OPS_MAX, times);
		if (!ok)
			return false;
	}
	return true;
}

bool scenario_parse_run(struct scenario *s, char *value, unsigned int line,
			const char **allowed)
{
	struct scenario_op op = { .keys = 1, .line = line };
	uint32_t times = 1;
	char *rest;

	*allowed = SCENARIO_RUN_FORMS;
	if (!parse_kind(strtok_r(value, SPACE, &rest), &op))
		return false;
	if (op.kind == OP_COMPUTE) {
		if (!distribution_parse(rest, &op.compute))
			return false;
	} else if (!parse_first(strtok_r(NULL, SPACE, &rest), &op) ||
		   !parse_options(&op, &times, rest)) {
		return false;
	}
	if (times > SCENARIO_OPS_MAX - s->nops) {
		*allowed = "256 operations in all";
		return false;
	}
	while (times--)
		s->ops[s->nops++] = op;
	return true;
}

/* ---- faults ---- */

/* The keys of deaths, by enum scenario_fault_kind. */
static const char *const fault_names[] = { "rank", "node", "link", "head" };

const char *scenario_fault_name(enum scenario_fault_kind kind)
{
	return fault_names[kind];
}

/* NODE-NODE. Changes the text. */
static bool parse_pair(char *word, uint32_t *a, uint32_t *b)
{
	char *dash = word ? strchr(word, '-') : NULL;

	if (!dash)
		return false;
	*dash = '\0';
	return count_of(word, 0, LAYOUT_NODES_MAX, a) &&
	       count_of(dash + 1, 0, LAYOUT_NODES_MAX, b) && *a != *b;
}

static bool parse_who(char *word, bool link, uint32_t *a, uint32_t *b)
{
	return link ? parse_pair(word, a, b) :
		      count_of(word, 0, LAYOUT_RANKS_MAX, a);
}

static bool parse_slow(struct scenario *s, bool link, char *value,
		       unsigned int line)
{
	struct scenario_slow *f = &s->slow[s->nslow];
	char *rest, *word = strtok_r(value, SPACE, &rest), *how, *number;

	f->link = link;
	f->line = line;
	how = strtok_r(NULL, SPACE, &rest);
	number = strtok_r(NULL, SPACE, &rest);
	if (!parse_who(word, link, &f->a, &f->b) || !how ||
	    strcmp(how, "factor") != 0 || !number ||
	    !units_number(number, &f->factor) || f->factor < 1 ||
	    f->factor > 1e6 || strtok_r(NULL, SPACE, &rest))
		return false;
	s->nslow++;
	return true;
}

/* "resume TIME", or nothing. */
static bool parse_resume(struct scenario_fault *f, char **rest)
{
	char *word = strtok_r(NULL, SPACE, rest), *time;

	if (!word)
		return true;
	time = strtok_r(NULL, SPACE, rest);
	f->resumes = true;
	return f->kind == FAULT_HEAD && strcmp(word, "resume") == 0 && time &&
	       units_time(time, &f->resume);
}

static bool parse_death(struct scenario *s, enum scenario_fault_kind kind,
			char *value, unsigned int line)
{
	struct scenario_fault *f = &s->faults[s->nfaults];
	char *rest, *word = strtok_r(value, SPACE, &rest), *how, *when;
	bool ok = parse_who(word, kind == FAULT_LINK, &f->a, &f->b);

	*f = (struct scenario_fault){ .kind = kind, .a = f->a, .b = f->b, .line = line };
	how = strtok_r(NULL, SPACE, &rest);
	when = strtok_r(NULL, SPACE, &rest);
	if (!ok || !how || !when || !parse_resume(f, &rest) || strtok_r(NULL, SPACE, &rest))
		return false;
	f->in_phase = strcmp(how, "in") == 0;
	if (f->in_phase)
		ok = count_of(when, 1, SCENARIO_OPS_MAX, &f->phase);
	else
		ok = strcmp(how, "at") == 0 && units_time(when, &f->at);
	f->phase -= f->in_phase;
	s->nfaults += ok;
	return ok;
}

bool scenario_parse_fault(struct scenario *s, const char *key, char *value,
			  unsigned int line, const char **allowed)
{
	if (s->nfaults == SCENARIO_FAULTS_MAX ||
	    s->nslow == SCENARIO_FAULTS_MAX) {
		*allowed = "64 lines of faults";
		return false;
	}
	if (strncmp(key, "slow_", 5) == 0)
		return parse_slow(s, strcmp(key, "slow_link") == 0, value,
				  line);
	for (int kind = FAULT_RANK; kind <= FAULT_HEAD; kind++)
		if (strcmp(key, fault_names[kind]) == 0)
			return parse_death(s, kind, value, line);
	return false;
}
