/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of the server of the client library's tests to PMI-1. */
#include "server-parts.h"


#include "unit.h"

static void init(struct fake *f, const struct pmi_message *m,
		 const char *thrid)
{
	struct answer a;
	int version = 0;
	bool refuse;

	pmi_message_int(m, "pmi_version", &version);
	refuse = version == 2 && f->is.pmi1_only;
	fake_begin(f, &a, "response_to_init", NULL);
	pmi_write_int(&a.w, "rc", refuse ? -1 : 0);
	pmi_write_int(&a.w, "pmi_version", refuse ? 1 : version);
	pmi_write_int(&a.w, "pmi_subversion",
		      version == 2 && !refuse ? 0 : f->is.groups ? 2 : 1);
	fake_finish(f, &a);
	if (version == 2 && !refuse)
		f->protocol = PMI_PROTOCOL_2;
}

/* An answer of one field. */
static void answer_field(struct fake *f, const char *cmd, const char *key,
			 const char *value)
{
	struct answer a;

	fake_begin(f, &a, cmd, NULL);
	pmi_write_str(&a.w, key, value);
	fake_finish(f, &a);
}

static void get_appnum(struct fake *f, const struct pmi_message *m,
		       const char *thrid)
{
	answer_field(f, "appnum", "appnum", "0");
}

static void get_my_kvsname(struct fake *f, const struct pmi_message *m,
			   const char *thrid)
{
	answer_field(f, "my_kvsname", "kvsname", "77.0");
}

static void get_universe_size(struct fake *f, const struct pmi_message *m,
			      const char *thrid)
{
	answer_field(f, "universe_size", "size", "64");
}

static void put1(struct fake *f, const struct pmi_message *m,
		 const char *thrid)
{
	fake_put_fields(f, m, "key", "value");
	fake_answer_rc(f, "put_result", NULL, 0);
}

static void barrier_in(struct fake *f, const struct pmi_message *m,
		       const char *thrid)
{
	const char *group = pmi_message_str(m, "group");

	if (group)
		fake_note_group(f, group);
	fake_fence_ended(f, "barrier_out",
			 group ? strchr(group, ':') + 1 : NULL);
}

static void get1(struct fake *f, const struct pmi_message *m,
		 const char *thrid)
{
	const struct pair *p = fake_find_for_any(f, fake_str(m, "key"));
	struct answer a;

	fake_begin(f, &a, "get_result", NULL);
	pmi_write_int(&a.w, "rc", p ? 0 : -1);
	if (p)
		pmi_write_str(&a.w, "value", p->value);
	fake_finish(f, &a);
}

static void publish_name(struct fake *f, const struct pmi_message *m,
			 const char *thrid)
{
	answer_field(f, "publish_result", "info", "ok");
}

static void lookup_name(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	answer_field(f, "lookup_result", "info", "fail");
}

static void spawn1(struct fake *f, const struct pmi_message *m,
		   const char *thrid)
{
	if (!strcmp(fake_str(m, "totspawns"), fake_str(m, "spawnssofar")))
		fake_answer_rc(f, "spawn_result", NULL, 0);
}

static void finalize1(struct fake *f, const struct pmi_message *m,
		      const char *thrid)
{
	fake_answer_rc(f, "finalize_ack", NULL, 0);
}

const struct fake_command fake_pmi1_commands[] = {
	{ "init", init },
	{ "get_appnum", get_appnum },
	{ "get_my_kvsname", get_my_kvsname },
	{ "get_universe_size", get_universe_size },
	{ "put", put1 },
	{ "barrier_in", barrier_in },
	{ "get", get1 },
	{ "publish_name", publish_name },
	{ "lookup_name", lookup_name },
	{ "spawn", spawn1 },
	{ "finalize", finalize1 },
	{ NULL, NULL },
};
