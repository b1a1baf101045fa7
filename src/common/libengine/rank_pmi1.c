/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of PMI-1. */
#include <string.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"

/* Versions as PMI counts them. */
#define PMI1_VERSION 1
#define PMI1_SUBVERSION 2 /* with group barriers */
#define PMI2_VERSION 2
#define PMI2_SUBVERSION 0

/*
 * All clients of PMI-1 announce 1.1, in the same words. MPICH 5 takes a higher answer as an
 * offer; Flux ends at any other than 1.1. Both take the first word of a name, but words of
 * MPICH, old and new, end at a space, those of Flux at any white space: so after a tab is
 * what Flux alone reads.
 */
#define FOR_CLIENTS_OF_1_1 "\tpmi_subversion=1"

static void answer_init(struct rank_session *ss, const struct rank_request *rq,
			int rc, bool second)
{
	struct pmi_writer *w = answer_begin(ss, rq, rc);

	pmi_write_int(w, "pmi_version", second ? PMI2_VERSION : PMI1_VERSION);
	if (!second)
		pmi_write_str(w, "compat", FOR_CLIENTS_OF_1_1);
	pmi_write_int(w, "pmi_subversion",
		      second ? PMI2_SUBVERSION : PMI1_SUBVERSION);
	answer_end(ss, rq);
}

/*
 * An init of a program that has not finalized: MPICH 5 does so at exit only, and sends
 * init for each of its sessions. The values of the rank stay. A program with the
 * extension never does that; this is another one, on the descriptor of the first.
 */
static void init_again(struct rank_session *ss, const struct rank_request *rq,
		       int version)
{
	bool second = ss->protocol == PMI_PROTOCOL_2;

	if (version == (second ? PMI2_VERSION : PMI1_VERSION) && !ss->extension)
		answer_init(ss, rq, PMI_RC_OK, second);
	else
		answer_error(ss, rq, PMI_RC_INIT,
			     "a program on this PMI_FD has not finalized");
}

static void start(struct rank_session *ss, const struct rank_request *rq, int version,
		  uint32_t process)
{
	ss->refused = 0;
	ss->owner = process;
	buf_free(&ss->aside); /* of the one before */
	if (ss->state == RANK_ACTIVE) {
		init_again(ss, rq, version);
		return;
	}
	rank_restart(ss);
	if (version == PMI1_VERSION) {
		ss->protocol = PMI_PROTOCOL_1;
		ss->state = RANK_ACTIVE;
	} else {
		ss->protocol = PMI_PROTOCOL_2;
		ss->state = RANK_HANDSHAKE;
	}
	pmix_tell_pmi(ss->server);
	answer_init(ss, rq, PMI_RC_OK, version == PMI2_VERSION);
	engine_started(ss->server, ss);
	if (version == PMI1_VERSION)
		rank_look_at_number(ss);
}

/* How a program of either protocol starts. */
static void handle_init(struct rank_session *ss, const struct rank_request *rq,
			const struct pmi_message *m)
{
	int version;

	if (pmi_message_int(m, "pmi_version", &version)) {
		answer_error(ss, rq, PMI_RC_INVALID_ARG,
			     "pmi_version is missing");
		return;
	}
	if (version != PMI1_VERSION && version != PMI2_VERSION) {
		answer_init(ss, rq, PMI_RC_FAIL, true);
		return;
	}
	if (!admission_waits(ss, rq, version, start))
		start(ss, rq, version, ss->writer);
}

static void handle_get_maxes(struct rank_session *ss,
			     const struct rank_request *rq,
			     const struct pmi_message *m)
{
	struct pmi_writer *w = answer_begin(ss, rq, PMI_RC_OK);

	pmi_write_int(w, "kvsname_max", PMI_KVSNAME_MAX);
	pmi_write_int(w, "keylen_max", PMI_KEYLEN_MAX);
	pmi_write_int(w, "vallen_max", PMI_VALLEN_MAX);
	answer_end(ss, rq);
}

static void handle_get_universe_size(struct rank_session *ss,
				     const struct rank_request *rq,
				     const struct pmi_message *m)
{
	struct pmi_writer *w = answer_begin(ss, rq, PMI_RC_OK);

	pmi_write_int(w, "size", ss->server->step->universe_size);
	answer_end(ss, rq);
}

static void handle_get_appnum(struct rank_session *ss,
			      const struct rank_request *rq,
			      const struct pmi_message *m)
{
	struct pmi_writer *w = answer_begin(ss, rq, PMI_RC_OK);

	pmi_write_int(w, "appnum", engine_appnum(ss->server, ss->rank));
	answer_end(ss, rq);
}

static void handle_get_my_kvsname(struct rank_session *ss,
				  const struct rank_request *rq,
				  const struct pmi_message *m)
{
	struct pmi_writer *w = answer_begin(ss, rq, PMI_RC_OK);

	pmi_write_str(w, "kvsname", ss->server->step->jobid);
	answer_end(ss, rq);
}

/* The commands of one spawn come as one mcmd each; one answer for all. */
static void handle_spawn(struct rank_session *ss, const struct rank_request *rq,
			 const struct pmi_message *m)
{
	const char *what = "not an mcmd";
	int nth, rc;

	if (!pmi_message_int(m, "spawnssofar", &nth) && nth == 1)
		ss->skip_spawns = false;
	if (ss->skip_spawns)
		return;
	rc = m->mcmd ? spawn_add_pmi1(m, &ss->spawn, &what) : -1;
	if (rc < 0) {
		ss->skip_spawns = m->mcmd;
		answer_error(ss, rq, PMI_RC_INVALID_ARGS,
			     "malformed spawn request: %s", what ? what : "?");
	} else if (rc == 0) {
		requests_spawn(ss, rq, ss->spawn);
		spawn_free(ss->spawn);
		ss->spawn = NULL;
	}
}

static void handle_unsupported(struct rank_session *ss,
			       const struct rank_request *rq,
			       const struct pmi_message *m)
{
	answer_error(ss, rq, PMI_RC_FAIL,
		     "%s is not supported: a step has one KVS, named by "
		     "get_my_kvsname", rq->command->name);
}

#define ACTIVE IN(RANK_ACTIVE)
#define STARTABLE (IN(RANK_FRESH) | IN(RANK_FINALIZED) | ACTIVE)

static const struct command COMMANDS[] = {
	COMMAND("init", "response_to_init", STARTABLE, handle_init,
		.starts = true),
	COMMAND("get_maxes", "maxes", ACTIVE, handle_get_maxes),
	COMMAND("get_universe_size", "universe_size", ACTIVE,
		handle_get_universe_size),
	COMMAND("get_appnum", "appnum", ACTIVE, handle_get_appnum),
	COMMAND("get_my_kvsname", "my_kvsname", ACTIVE, handle_get_my_kvsname),
	/* Clients look at the name of the response only, not at its rc. */
	COMMAND("barrier_in", "barrier_out", ACTIVE, group_handle_barrier,
		.failure = "barrier_failed", .tagged = true),
	COMMAND("put", "put_result", ACTIVE, rank_handle_put),
	COMMAND("get", "get_result", ACTIVE, rank_handle_get),
	COMMAND("publish_name", "publish_result", ACTIVE, requests_publish),
	COMMAND("unpublish_name", "unpublish_result", ACTIVE,
		requests_unpublish),
	COMMAND("lookup_name", "lookup_result", ACTIVE, requests_lookup),
	COMMAND("create_kvs", "newkvs", ACTIVE, handle_unsupported),
	COMMAND("destroy_kvs", "kvs_destroyed", ACTIVE, handle_unsupported),
	COMMAND("getbyidx", "getbyidx_results", ACTIVE, handle_unsupported),
	COMMAND("spawn", "spawn_result", ACTIVE, handle_spawn),
	COMMAND("abort", "abort_result", IN_LIVE, rank_handle_abort),
	COMMAND("finalize", "finalize_ack", ACTIVE, rank_handle_finalize),
};

const struct command *pmi1_command(const char *name)
{
	for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++)
		if (strcmp(COMMANDS[i].name, name) == 0)
			return &COMMANDS[i];
	return NULL;
}
