/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on the PMI-2 wire, plain and with the pmi2x extension. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/extension.h"
#include "libshm/records.h"
#include "collective.h"
#include "entry.h"
#include "job.h"
#include "slots_client.h"
#include "text.h"
#include "wire.h"

/* A command, and the name of its response. */
#define COMMAND(name) name, name "-response"

static int pmi2_put(struct job *job, const char *key, size_t key_len,
		    const void *value, size_t value_len)
{
	struct call call;

	call_begin(&call, job->conn, COMMAND("kvs-put"));
	pmi_write_bytes(&call.writer, "key", key, key_len);
	pmi_write_bytes(&call.writer, "value", value, value_len);
	return wire_run(&call);
}

static int pmi2_fence(struct job *job, struct call *call)
{
	call_begin(call, job->conn, COMMAND("kvs-fence"));
	return wire_post(call);
}

static int pmi2_get(struct job *job, const char *jobid, int source,
		    const char *key, struct value *out)
{
	struct call call;

	call_begin(&call, job->conn, COMMAND("kvs-get"));
	if (jobid)
		pmi_write_str(&call.writer, "jobid", jobid);
	pmi_write_int(&call.writer, "srcid", source);
	pmi_write_str(&call.writer, "key", key);
	return wire_take(&call, call_post(&call), "value", out);
}

static int pmi2_node_put(struct job *job, const char *name,
			 const char *value)
{
	return wire_tell(job, COMMAND("info-putnodeattr"), "key", name,
			 "value", value, NULL);
}

static int pmi2_node_get(struct job *job, const char *name, bool wait,
			 struct value *out)
{
	return wire_ask(job, "value", out, COMMAND("info-getnodeattr"),
			"key", name, "wait", wait ? "TRUE" : "FALSE", NULL);
}

static int pmi2_job_attr(struct job *job, const char *name,
			 struct value *out)
{
	return wire_ask(job, "value", out, COMMAND("info-getjobattr"),
			"key", name, NULL);
}

static int pmi2_publish(struct job *job, const char *name, const char *port)
{
	return wire_tell(job, COMMAND("name-publish"), "name", name,
			 "port", port, "infokeycount", "0", NULL);
}

static int pmi2_unpublish(struct job *job, const char *name)
{
	return wire_tell(job, COMMAND("name-unpublish"), "name", name,
			 "infokeycount", "0", NULL);
}

/* Slurm's plugin calls the field "value", others "port". */
static int pmi2_lookup(struct job *job, const char *name, struct value *port)
{
	struct call call;
	const char *key;
	int rc;

	call_begin(&call, job->conn, COMMAND("name-lookup"));
	pmi_write_str(&call.writer, "name", name);
	pmi_write_int(&call.writer, "infokeycount", 0);
	rc = wire_absent(call_run(&call));
	key = pmi_message_str(&call.reply, "port") ? "port" : "value";
	return wire_take(&call, rc, key, port);
}

/*
 * Slurm's stock plugin cuts values at a ';', so they travel encoded. Other
 * servers do not know the command, and some end the job over it.
 */
static int pmi2_ring(struct job *job, const char *value,
		     struct ring_place *out)
{
	struct value text = { NULL, 0 };
	int rc;

	if (!job->settings.slurm)
		return -ENOTSUP;
	rc = text_encode(value, strlen(value), &text);
	if (!rc && text.len >= PMI_VALLEN_MAX)
		rc = -EMSGSIZE;
	if (!rc)
		rc = collective_ring(job, text.data, text.len, out);
	value_free(&text);
	if (!rc)
		rc = text_decode(&out->left);
	return rc ? rc : text_decode(&out->right);
}

/* ---- spawn ---- */

static void write_indexed(struct call *call, const char *key, uint32_t i,
			  const char *value)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%u", key, i);
	pmi_write_str(&call->writer, name, value);
}

static void write_pairs(struct call *call, const char *key, const char *val,
			const struct spawn_pair *pairs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		write_indexed(call, key, i, pairs[i].key);
		write_indexed(call, val, i, pairs[i].value);
	}
}

static void write_command(struct call *call, const struct spawn_command *c)
{
	pmi_write_str(&call->writer, "subcmd", c->program);
	pmi_write_int(&call->writer, "maxprocs", c->nprocs);
	pmi_write_int(&call->writer, "argc", c->argc);
	for (uint32_t i = 0; i < c->argc; i++)
		write_indexed(call, "argv", i, c->argv[i]);
	pmi_write_int(&call->writer, "infokeycount", c->ninfo);
	write_pairs(call, "infokey", "infoval", c->info, c->ninfo);
}

static int pmi2_spawn(struct job *job, const struct spawn_request *request,
		      struct spawn_result *out)
{
	struct call call;
	int rc;

	call_begin(&call, job->conn, COMMAND("spawn"));
	pmi_write_int(&call.writer, "ncmds", request->ncommands);
	pmi_write_int(&call.writer, "preputcount", request->npreput);
	write_pairs(&call, "ppkey", "ppval", request->preput,
		    request->npreput);
	for (uint32_t i = 0; i < request->ncommands; i++)
		write_command(&call, &request->commands[i]);
	rc = call_run(&call);
	if (!rc && pmi_message_str(&call.reply, "errcodes"))
		rc = field_value(&call.reply, "errcodes", &out->errcodes);
	if (!rc && pmi_message_str(&call.reply, "jobid"))
		rc = field_value(&call.reply, "jobid", &out->jobid);
	call_end(&call);
	return rc;
}

/* ---- the job ---- */

static int pmi2_jobid(struct job *job, struct value *out)
{
	return wire_ask(job, "jobid", out, COMMAND("job-getid"), NULL);
}

/* Slurm's stock plugin does not answer these two. */
static bool is_stock(const struct job *job)
{
	return job->settings.slurm && !job->extension;
}

static int pmi2_connect(struct job *job, const char *jobid)
{
	return is_stock(job) ? -ENOTSUP :
	       wire_tell(job, COMMAND("job-connect"), "jobid", jobid, NULL);
}

static int pmi2_disconnect(struct job *job, const char *jobid)
{
	return is_stock(job) ? -ENOTSUP :
	       wire_tell(job, COMMAND("job-disconnect"), "jobid", jobid, NULL);
}

static int pmi2_abort(struct job *job, bool world, int code,
		      const char *text)
{
	struct call call;

	call_begin(&call, job->conn, COMMAND("abort"));
	pmi_write_bool(&call.writer, "isworld", world);
	pmi_write_int(&call.writer, "exitcode", code);
	pmi_write_str(&call.writer, "msg", text);
	return call_send_only(&call);
}

static int pmi2_finalize(struct job *job)
{
	struct call call;

	call_begin(&call, job->conn, COMMAND("finalize"));
	rank_trace_write(&job->trace, &call.writer);
	return wire_run(&call);
}

/* Operations that are the same with the extension. */
#define PMI2_ALIKE \
	.get = pmi2_get, \
	.node_put = pmi2_node_put, \
	.node_get = pmi2_node_get, \
	.job_attr = pmi2_job_attr, \
	.publish = pmi2_publish, \
	.unpublish = pmi2_unpublish, \
	.lookup = pmi2_lookup, \
	.spawn = pmi2_spawn, \
	.jobid = pmi2_jobid, \
	.connect = pmi2_connect, \
	.disconnect = pmi2_disconnect, \
	.abort = pmi2_abort

const struct wire_ops wire_pmi2 = {
	PMI2_ALIKE,
	.put = pmi2_put,
	.fence = pmi2_fence,
	.ring = pmi2_ring,
	.finalize = pmi2_finalize,
};

/* ---- with the extension ---- */

/*
 * Make room in the batch: its records are posted as `call`. They stay there when
 * there is no memory for it.
 */
static int post_put(struct job *job, struct buf *records, struct call *call)
{
	int rc;

	call_begin(call, job->conn, COMMAND(EXT_CMD_PUT));
	pmi_write_bytes(&call->writer, EXT_KEY_RECORDS, records->data,
			records->len);
	rc = call_close(call);
	if (rc) {
		call_end(call);
		return rc;
	}
	buf_free(records);
	return wire_post(call);
}

static int finish_put(struct job *job, struct call *call)
{
	int rc = wire_wait(call);

	if (rc) {
		pthread_mutex_lock(&job->batch.lock);
		job->batch.lost = rc;
		pthread_mutex_unlock(&job->batch.lock);
	}
	return rc;
}

/* The batch goes to the agent now. */
static int flush(struct job *job, struct buf *records)
{
	struct call call;
	int rc = post_put(job, records, &call);

	if (rc)
		return rc;
	rc = wire_wait(&call);
	if (rc)
		job->batch.lost = rc;
	else if (job->slots)
		slots_client_show_anew(job->slots);
	return rc;
}

/*
 * Values can be fetched when put has returned: the records from `start` on are shown to
 * the agent, or sent.
 */
static int show_put(struct job *job, struct buf *records, size_t start)
{
	if (!job->fetches)
		return 0;
	if (job->slots &&
	    slots_client_show(job->slots, records->data + start,
			      records->len - start))
		return 0;
	return flush(job, records);
}

/* Puts collect in the batch; the fence takes them along. */
static int extended_put(struct job *job, const char *key, size_t key_len,
			const void *value, size_t value_len)
{
	struct batch *b = &job->batch;
	struct call call;
	size_t start;
	bool full;
	int rc, refused = 0;

	pthread_mutex_lock(&b->lock);
	rc = b->lost;
	full = !rc && b->records.len &&
	       b->records.len + key_len + value_len > BATCH_MAX;
	if (full)
		rc = post_put(job, &b->records, &call);
	full = full && !rc;
	start = b->records.len;
	if (!rc)
		rc = record_append(&b->records, key, key_len, value, value_len);
	if (!rc)
		rc = show_put(job, &b->records, start);
	pthread_mutex_unlock(&b->lock);
	if (full)
		refused = finish_put(job, &call);
	return refused ? refused : rc;
}

/* The batch, if there is anything in it, as `call`; -EAGAIN: there is not. */
static int post_batch(struct job *job, struct call *call)
{
	struct batch *b = &job->batch;
	int rc;

	pthread_mutex_lock(&b->lock);
	rc = b->lost;
	if (!rc)
		rc = b->records.len ? post_put(job, &b->records, call) : -EAGAIN;
	pthread_mutex_unlock(&b->lock);
	return rc;
}

/* The batch goes before: what is in it is the group's afterwards. */
static int extended_barrier_group(struct job *job, const char *group, int tag)
{
	struct call put, call;
	int posted, rc, refused;

	posted = post_batch(job, &put);
	if (posted && posted != -EAGAIN)
		return posted;
	call_begin(&call, job->conn, COMMAND(EXT_CMD_BARRIER));
	pmi_write_str(&call.writer, EXT_KEY_GROUP, group);
	rc = wire_post(&call);
	refused = posted ? 0 : finish_put(job, &put);
	if (!rc)
		rc = wire_wait(&call);
	return refused ? refused : rc;
}

static int extended_fetch(struct job *job, int rank, const char *key,
			  int timeout, struct call *call)
{
	call_begin(call, job->conn, COMMAND(EXT_CMD_FETCH));
	pmi_write_int(&call->writer, EXT_KEY_RANK, rank);
	pmi_write_str(&call->writer, EXT_KEY_KEY, key);
	pmi_write_int(&call->writer, EXT_KEY_TIMEOUT, timeout);
	return wire_post(call);
}

static int extended_fetch_cancel(struct job *job)
{
	return wire_tell(job, COMMAND(EXT_CMD_FETCH_CANCEL), NULL);
}

static int extended_ring(struct job *job, const char *value,
			 struct ring_place *out)
{
	return collective_ring(job, value, strlen(value), out);
}

/* A response would say nothing; who does not wait for one ends sooner. */
static int extended_finalize(struct job *job)
{
	struct call call;
	int rc = conn_error(job->conn);

	if (rc)
		return rc;
	call_begin(&call, job->conn, COMMAND("finalize"));
	pmi_write_bool(&call.writer, EXT_KEY_SILENT, true);
	rank_trace_write(&job->trace, &call.writer);
	return call_send_only(&call);
}

const struct wire_ops wire_extended = {
	PMI2_ALIKE,
	.put = extended_put,
	.fence = collective_fence,
	.barrier_group = extended_barrier_group,
	.fetch = extended_fetch,
	.fetch_cancel = extended_fetch_cancel,
	.ring = extended_ring,
	.finalize = extended_finalize,
};
