/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spawn requests as clients send them.
 *
 * PMI-2 sends one message: ncmds, preputcount, ppkey0, ppval0, ..., then for
 * each command subcmd, maxprocs, argc, argv0, ..., infokeycount, infokey0,
 * infoval0, ... PMI-1 sends a message for each command, with totspawns and
 * spawnssofar, and repeats the preput pairs in each. Fields are taken in the
 * order in which they come, so it does not matter where a client starts to
 * count; where it says how many there are, that many must be there.
 */
#include "libpmi/spawn.h"

#include <errno.h>
#include <string.h>

#include "libutil/decimal.h"

#define SAID_MAX 999999999 /* of what is there; no limit is near it */

enum count { COUNT_COMMANDS, COUNT_SO_FAR, COUNT_PREPUT, COUNT_ARGS, COUNT_INFO,
	     COUNTS };

struct parse {
	struct spawn_request *s;
	const struct pmi_field *key; /* of a pair; its value comes next */
	const char *counted_by[COUNTS]; /* the field that said a count */
	uint64_t said[COUNTS];
	uint32_t preput_seen;
	bool begun; /* PMI-1: the command of this message */
	const char *what; /* the field that is wrong or missing */
};

struct rule {
	const char *name;
	bool numbered; /* the name is followed by a decimal index */
	int (*take)(struct parse *p, const struct rule *r,
		    const struct pmi_field *f);
	enum count count; /* for take_count */
};

static int parse_number(const struct pmi_field *f, uint64_t *out)
{
	return strlen(f->value) == f->value_len &&
	       decimal_u64(f->value, 0, SAID_MAX, out) ? 0 : -EINVAL;
}

static int take_count(struct parse *p, const struct rule *r,
		      const struct pmi_field *f)
{
	p->counted_by[r->count] = r->name;
	return parse_number(f, &p->said[r->count]);
}

static int take_command(struct parse *p, const struct rule *r,
			const struct pmi_field *f)
{
	if (p->begun)
		return -EINVAL; /* it would leave the first field unfinished */
	p->begun = true;
	return spawn_add_command(p->s);
}

static int take_program(struct parse *p, const struct rule *r,
			const struct pmi_field *f)
{
	return spawn_set_program(p->s, f->value, f->value_len);
}

static int take_nprocs(struct parse *p, const struct rule *r,
		       const struct pmi_field *f)
{
	uint64_t nprocs;
	int rc = parse_number(f, &nprocs);

	return rc ? rc : spawn_set_nprocs(p->s, nprocs);
}

static int take_arg(struct parse *p, const struct rule *r,
		    const struct pmi_field *f)
{
	return spawn_add_arg(p->s, f->value, f->value_len);
}

static int take_key(struct parse *p, const struct rule *r,
		    const struct pmi_field *f)
{
	p->key = f;
	return 0;
}

static int make_pair(struct parse *p, const struct pmi_field *f,
		     struct pmi_field *pair)
{
	if (!p->key)
		return -EINVAL;
	*pair = *f;
	pair->key = p->key->value;
	pair->key_len = p->key->value_len;
	p->key = NULL;
	return 0;
}

static int take_info(struct parse *p, const struct rule *r,
		     const struct pmi_field *f)
{
	struct pmi_field pair;
	int rc = make_pair(p, f, &pair);

	return rc ? rc : spawn_add_info(p->s, &pair);
}

static int take_preput(struct parse *p, const struct rule *r,
		       const struct pmi_field *f)
{
	struct pmi_field pair;
	int rc = make_pair(p, f, &pair);

	p->preput_seen++;
	if (rc || p->s->ncommands > 1) /* PMI-1 says the same again */
		return rc;
	return spawn_add_preput(p->s, &pair);
}

/* Check that the command described last is complete; the error names what is missing. */
static int end_command(struct parse *p, const char *program, const char *nprocs)
{
	const struct spawn_command *c = NULL;

	if (p->s->ncommands)
		c = &p->s->commands[p->s->ncommands - 1];
	if (!c || !c->program)
		p->what = program;
	else if (c->nprocs == 0)
		p->what = nprocs;
	else if (p->counted_by[COUNT_ARGS] && p->said[COUNT_ARGS] != c->argc)
		p->what = p->counted_by[COUNT_ARGS];
	else if (p->counted_by[COUNT_INFO] && p->said[COUNT_INFO] != c->ninfo)
		p->what = p->counted_by[COUNT_INFO];
	return p->what ? -EINVAL : 0;
}

/* subcmd of PMI-2: ends the command before it, begins one, and names it. */
static int take_subcmd(struct parse *p, const struct rule *r,
		       const struct pmi_field *f)
{
	int rc = 0;

	if (p->s->ncommands)
		rc = end_command(p, "subcmd", "maxprocs");
	if (!rc)
		rc = spawn_add_command(p->s);
	p->counted_by[COUNT_ARGS] = p->counted_by[COUNT_INFO] = NULL;
	return rc ? rc : take_program(p, r, f);
}

static const struct rule pmi2_rules[] = {
	{ "ncmds", false, take_count, COUNT_COMMANDS },
	{ "preputcount", false, take_count, COUNT_PREPUT },
	{ "ppkey", true, take_key, 0 },
	{ "ppval", true, take_preput, 0 },
	{ "subcmd", false, take_subcmd, 0 },
	{ "maxprocs", false, take_nprocs, 0 },
	{ "argc", false, take_count, COUNT_ARGS },
	{ "argv", true, take_arg, 0 },
	{ "infokeycount", false, take_count, COUNT_INFO },
	{ "infokey", true, take_key, 0 },
	{ "infoval", true, take_info, 0 },
	{ NULL, false, NULL, 0 },
};

static const struct rule pmi1_rules[] = {
	{ "mcmd", false, take_command, 0 },
	{ "totspawns", false, take_count, COUNT_COMMANDS },
	{ "spawnssofar", false, take_count, COUNT_SO_FAR },
	{ "execname", false, take_program, 0 },
	{ "nprocs", false, take_nprocs, 0 },
	{ "argcnt", false, take_count, COUNT_ARGS },
	{ "arg", true, take_arg, 0 },
	{ "preput_num", false, take_count, COUNT_PREPUT },
	{ "preput_key_", true, take_key, 0 },
	{ "preput_val_", true, take_preput, 0 },
	{ "info_num", false, take_count, COUNT_INFO },
	{ "info_key_", true, take_key, 0 },
	{ "info_val_", true, take_info, 0 },
	{ NULL, false, NULL, 0 },
};

static bool rule_matches(const struct rule *r, const char *key)
{
	size_t len = strlen(r->name);

	if (strncmp(key, r->name, len))
		return false;
	if (!r->numbered)
		return key[len] == '\0';
	return key[len] && key[len + strspn(key + len, "0123456789")] == '\0';
}

/* Take all fields that a rule knows. */
static int take_fields(struct parse *p, const struct rule *rules,
		       const struct pmi_message *m)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct rule *r = rules;
		int rc;

		while (r->name && !rule_matches(r, m->fields[i].key))
			r++;
		rc = r->name ? r->take(p, r, &m->fields[i]) : 0;
		if (rc) {
			if (!p->what)
				p->what = m->fields[i].key;
			return rc;
		}
	}
	return 0;
}

static int check_preput(struct parse *p)
{
	if (p->said[COUNT_PREPUT] == p->preput_seen)
		return 0;
	p->what = p->counted_by[COUNT_PREPUT];
	if (!p->what)
		p->what = "number of preput pairs";
	return -EINVAL;
}

static int parse_pmi2(struct parse *p, const struct pmi_message *m)
{
	int rc = take_fields(p, pmi2_rules, m);

	if (!rc)
		rc = end_command(p, "subcmd", "maxprocs");
	if (!rc)
		rc = check_preput(p);
	if (!rc && p->said[COUNT_COMMANDS] != p->s->ncommands) {
		p->what = "ncmds";
		rc = -EINVAL;
	}
	return rc;
}

/* Check that the counters of a PMI-1 message fit the commands that have come. */
static int check_turn(struct parse *p)
{
	if (p->said[COUNT_SO_FAR] != p->s->ncommands)
		p->what = "spawnssofar";
	else if (p->said[COUNT_COMMANDS] < p->s->ncommands ||
		 p->said[COUNT_COMMANDS] > SPAWN_COMMANDS_MAX)
		p->what = "totspawns";
	return p->what ? -EINVAL : 0;
}

static int parse_pmi1(struct parse *p, const struct pmi_message *m)
{
	int rc = take_fields(p, pmi1_rules, m);

	if (!rc)
		rc = end_command(p, "execname", "nprocs");
	if (!rc)
		rc = check_preput(p);
	if (!rc)
		rc = check_turn(p);
	return rc;
}

int spawn_from_pmi2(const struct pmi_message *m, struct spawn_request **out,
		    const char **what)
{
	struct parse p = { .s = spawn_new() };
	int rc = p.s ? parse_pmi2(&p, m) : -ENOMEM;

	*what = p.what;
	if (rc) {
		spawn_free(p.s);
		return rc;
	}
	*out = p.s;
	return 0;
}

int spawn_add_pmi1(const struct pmi_message *m, struct spawn_request **s,
		   const char **what)
{
	struct parse p = { .s = *s ? *s : spawn_new() };
	int rc = p.s ? parse_pmi1(&p, m) : -ENOMEM;

	*what = p.what;
	*s = rc ? NULL : p.s;
	if (rc) {
		spawn_free(p.s);
		return rc;
	}
	return p.said[COUNT_COMMANDS] > p.s->ncommands;
}
