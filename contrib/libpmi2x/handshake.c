/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake: PMI-2 is offered first, with the pmi2x extension; a server
 * that refuses it is spoken to in PMI-1. See doc/extension-protocol.md.
 */
#include "handshake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "libpmi/extension.h"
#include "pmi2x-build.h"
#include "print_error.h"
#include "conn.h"
#include "entry.h"
#include "job.h"
#include "libshm/region.h"
#include "libutil/decimal.h"
#include "slots_client.h"
#include "wire.h"

/* The answer to "cmd=init". */
struct init_answer {
	int rc;
	int version;
	int subversion;
	char text[128]; /* why not, or "" */
};

static int say_init(struct job *job, int version, int subversion,
		    struct init_answer *answer)
{
	struct call call;
	const char *text;
	int rc;

	call_begin(&call, job->conn, "init", "response_to_init");
	pmi_write_int(&call.writer, "pmi_version", version);
	pmi_write_int(&call.writer, "pmi_subversion", subversion);
	rc = call_run(&call);
	answer->rc = rc;
	text = pmi_message_str(&call.reply, "msg");
	snprintf(answer->text, sizeof(answer->text), "%s", text ? text : "");
	if (pmi_message_int(&call.reply, "pmi_version", &answer->version))
		answer->version = rc ? 0 : version;
	if (pmi_message_int(&call.reply, "pmi_subversion", &answer->subversion))
		answer->subversion = 0;
	call_end(&call);
	return rc < 0 && rc != -EREMOTEIO ? rc : 0;
}

/*
 * After a refusal Slurm's plugin takes the rest of the connection for PMI-1 and
 * leaves a second init unanswered; other servers want the second init.
 */
static int fall_back_to_pmi1(struct job *job, struct init_answer *answer)
{
	bool settled = answer->version == 1 &&
		       (answer->rc == 0 || job->settings.slurm);

	if (!settled && say_init(job, 1, 1, answer))
		return -ECONNRESET;
	if (!settled && answer->rc)
		return -EREMOTEIO;
	/* From 1.2 on there are groups, and a barrier's answer has its tag. */
	job->groups = answer->version == 1 && answer->subversion >= 2;
	conn_set_tagged(job->conn, job->groups);
	return 0;
}

static int choose_wire(struct job *job, bool *pmi2, struct init_answer *answer)
{
	int rc = 0;

	if (!job->settings.pmi1_wire)
		rc = say_init(job, 2, 0, answer);
	*pmi2 = !rc && answer->rc == 0 && answer->version == 2;
	if (rc || *pmi2)
		return rc;
	return fall_back_to_pmi1(job, answer);
}

/* ---- PMI-2 ---- */

static void write_env(struct call *call, const char *key, const char *name)
{
	const char *text = getenv(name);

	if (text)
		pmi_write_str(&call->writer, key, text);
}

static void offer_extension(struct job *job, struct call *call)
{
	if (job->settings.disable)
		return;
	pmi_write_int(&call->writer, EXT_KEY_VERSION, EXT_VERSION);
	pmi_write_str(&call->writer, EXT_KEY_BUILD, PMI2X_BUILD);
	if (job->settings.no_region)
		return;
	pmi_write_int(&call->writer, EXT_KEY_REGION, REGION_VERSION);
	if (!job->settings.no_slots)
		pmi_write_int(&call->writer, EXT_KEY_SLOTS, SLOTS_VERSION);
}

/* A region that cannot be mapped (ulimit -v, seccomp) is done without. */
static void map_region(struct job *job, const struct call *call)
{
	int fd = conn_take_fd(job->conn);
	int version = 0;
	uint64_t size;

	if (fd < 0)
		return;
	pmi_message_int(&call->reply, EXT_KEY_REGION, &version);
	if (job->extension && version == REGION_VERSION &&
	    !field_u64(&call->reply, EXT_KEY_REGION_SIZE, &size) &&
	    !region_attach(&job->region, fd, size))
		job->region_size = size;
	close(fd);
}

/* Likewise: collectives then go over the socket. */
static void map_slots(struct job *job, const struct call *call)
{
	struct slots_place at = { .region = job->region };
	uint64_t slot;
	int version = 0;

	pmi_message_int(&call->reply, EXT_KEY_SLOTS, &version);
	if (!job->region || version != SLOTS_VERSION ||
	    field_u64(&call->reply, EXT_KEY_SLOTS_SIZE, &at.size) ||
	    field_u64(&call->reply, EXT_KEY_SLOTS_BOARD, &at.board) ||
	    field_u64(&call->reply, EXT_KEY_SLOT, &slot) || slot > INT32_MAX)
		return;
	at.slot = (uint32_t)slot;
	at.memory_fd = conn_take_fd(job->conn);
	at.wake_fd = conn_take_fd(job->conn);
	slots_client_open(&job->slots, job->conn, &at);
	if (at.memory_fd >= 0)
		close(at.memory_fd);
}

static void close_passed(struct job *job)
{
	int fd;

	while ((fd = conn_take_fd(job->conn)) >= 0)
		close(fd);
}

static int read_extension(struct job *job, const struct call *call)
{
	const char *build = pmi_message_str(&call->reply, EXT_KEY_BUILD);
	int version = 0;

	pmi_message_int(&call->reply, EXT_KEY_VERSION, &version);
	if (version == EXT_VERSION && !job->settings.disable)
		job->extension = version;
	pmi_message_int(&call->reply, EXT_KEY_NODES, &job->nodes);
	pmi_message_bool(&call->reply, EXT_KEY_GROUPS, &job->groups);
	job->groups = job->groups && job->extension;
	pmi_message_bool(&call->reply, EXT_KEY_FETCH, &job->fetches);
	job->fetches = job->fetches && job->extension;
	if (build) {
		job->server_build = strdup(build);
		if (!job->server_build)
			return -ENOMEM;
	}
	map_region(job, call);
	map_slots(job, call);
	close_passed(job);
	return 0;
}

static int read_place(struct job *job, const struct pmi_message *m)
{
	if (pmi_message_int(m, "rank", &job->rank) ||
	    pmi_message_int(m, "size", &job->size) || job->size < 1 ||
	    job->rank < 0 || job->rank >= job->size)
		return -EPROTO;
	if (pmi_message_int(m, "appnum", &job->appnum))
		job->appnum = -1;
	job->spawned = pmi_message_str(m, "spawner-jobid") != NULL;
	return 0;
}

static int init_pmi2(struct job *job)
{
	struct call call;
	int rc;

	conn_set_wire(job->conn, PMI_PROTOCOL_2, false);
	call_begin(&call, job->conn, "fullinit", "fullinit-response");
	write_env(&call, "pmijobid", "PMI_JOBID");
	write_env(&call, "pmirank", getenv("PMI_RANK") ? "PMI_RANK" : "PMI_ID");
	pmi_write_bool(&call.writer, "threaded", true);
	offer_extension(job, &call);
	rc = call_run(&call);
	if (!rc)
		rc = read_place(job, &call.reply);
	if (!rc)
		rc = read_extension(job, &call);
	call_end(&call);
	job->ops = job->extension ? &wire_extended : &wire_pmi2;
	conn_set_wire(job->conn, PMI_PROTOCOL_2, job->extension > 0);
	return rc;
}

/* ---- PMI-1: rank and size come in the environment ---- */

static bool env_int(const char *name, int *out)
{
	const char *text = getenv(name);
	uint32_t value;

	if (!text || !decimal_u32(text, 0, INT32_MAX, &value))
		return false;
	*out = (int)value;
	return true;
}

static int ask_appnum(struct job *job)
{
	struct call call;
	int rc;

	call_begin(&call, job->conn, "get_appnum", "appnum");
	rc = call_run(&call);
	if (rc || pmi_message_int(&call.reply, "appnum", &job->appnum))
		job->appnum = -1;
	call_end(&call);
	return rc == -EREMOTEIO || rc > 0 ? 0 : rc;
}

static int init_pmi1(struct job *job)
{
	int spawned = 0;

	job->ops = &wire_pmi1;
	if ((!env_int("PMI_RANK", &job->rank) &&
	     !env_int("PMI_ID", &job->rank)) ||
	    !env_int("PMI_SIZE", &job->size) || job->rank >= job->size) {
		print_error("pmi2x: PMI_RANK and PMI_SIZE must be the rank and the number of processes\n");
		return -EINVAL;
	}
	env_int("PMI_SPAWNED", &spawned);
	job->spawned = spawned != 0;
	return ask_appnum(job);
}

static void report_refusal(int rc, const char *text)
{
	if (rc == -ECONNRESET)
		print_error("pmi2x: PMI_FD is closed: an earlier program of the "
			    "task closed it for all, as MPICH does when it "
			    "finalizes, or the server has ended; start each "
			    "program by an srun of its own\n");
	else if (text[0])
		print_error("pmi2x: no session on PMI_FD: the server refused it: %s\n",
			    text);
	else if (rc < 0)
		print_error("pmi2x: no session on PMI_FD: %s\n", strerror(-rc));
	else
		print_error("pmi2x: no session on PMI_FD: the server "
			 "refused it with PMI error %d\n", rc);
}

int handshake(struct job *job)
{
	struct init_answer answer = { .rc = -EREMOTEIO };
	bool pmi2;
	int rc = choose_wire(job, &pmi2, &answer);

	if (!rc)
		rc = pmi2 ? init_pmi2(job) : init_pmi1(job);
	if (rc)
		report_refusal(rc, answer.text);
	return rc;
}
