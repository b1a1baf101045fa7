/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on the PMI-2 wire, plain and with the pmi2x extension. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/extension.h"
#include "libshm/records.h"
#include "session.h"
#include "text.h"

static void begin(struct session *s, struct call *call, const char *cmd,
		  const char *response)
{
	call_begin(call, s->conn, cmd, response);
}

static int pmi2_put(struct session *s, const char *key, size_t key_len,
		    const void *value, size_t value_len)
{
	struct call call;

	begin(s, &call, "kvs-put", "kvs-put-response");
	pmi_write_bytes(&call.writer, "key", key, key_len);
	pmi_write_bytes(&call.writer, "value", value, value_len);
	return wire_run(&call);
}

static int pmi2_fence(struct session *s, struct call *call)
{
	begin(s, call, "kvs-fence", "kvs-fence-response");
	return wire_post(call);
}

static int pmi2_get(struct session *s, const char *jobid, int source,
		    const char *key, struct value *out)
{
	struct call call;

	begin(s, &call, "kvs-get", "kvs-get-response");
	if (jobid)
		pmi_write_str(&call.writer, "jobid", jobid);
	pmi_write_int(&call.writer, "srcid", source);
	pmi_write_str(&call.writer, "key", key);
	return wire_take_found(&call, call_post(&call), out);
}

static int pmi2_node_put(struct session *s, const char *name,
			 const char *value)
{
	struct call call;

	begin(s, &call, "info-putnodeattr", "info-putnodeattr-response");
	pmi_write_str(&call.writer, "key", name);
	pmi_write_str(&call.writer, "value", value);
	return wire_run(&call);
}

static int pmi2_node_get(struct session *s, const char *name, bool wait,
			 struct value *out)
{
	struct call call;

	begin(s, &call, "info-getnodeattr", "info-getnodeattr-response");
	pmi_write_str(&call.writer, "key", name);
	pmi_write_bool(&call.writer, "wait", wait);
	return wire_take_found(&call, call_post(&call), out);
}

static int pmi2_job_attr(struct session *s, const char *name,
			 struct value *out)
{
	struct call call;

	begin(s, &call, "info-getjobattr", "info-getjobattr-response");
	pmi_write_str(&call.writer, "key", name);
	return wire_take_found(&call, call_post(&call), out);
}

static int pmi2_publish(struct session *s, const char *name, const char *port)
{
	struct call call;

	begin(s, &call, "name-publish", "name-publish-response");
	pmi_write_str(&call.writer, "name", name);
	pmi_write_str(&call.writer, "port", port);
	pmi_write_int(&call.writer, "infokeycount", 0);
	return wire_run(&call);
}

static int pmi2_unpublish(struct session *s, const char *name)
{
	struct call call;

	begin(s, &call, "name-unpublish", "name-unpublish-response");
	pmi_write_str(&call.writer, "name", name);
	pmi_write_int(&call.writer, "infokeycount", 0);
	return wire_run(&call);
}

/* Slurm's plugin calls the field "value", others "port". */
static int pmi2_lookup(struct session *s, const char *name, struct value *port)
{
	struct call call;
	const char *key;
	int rc;

	begin(s, &call, "name-lookup", "name-lookup-response");
	pmi_write_str(&call.writer, "name", name);
	pmi_write_int(&call.writer, "infokeycount", 0);
	rc = call_run(&call);
	if (rc == -EREMOTEIO || rc > 0)
		rc = -ENOENT;
	key = pmi_message_str(&call.reply, "port") ? "port" : "value";
	return wire_take(&call, rc, key, port);
}

/* Slurm's stock plugin does not tell the size: there it is the job's. */
static int take_ring(struct session *s, struct call *call,
		     struct ring_place *out)
{
	int rc = pmi_message_int(&call->reply, "ring-count", &out->rank);

	if (pmi_message_int(&call->reply, "ring-size", &out->size))
		out->size = s->size;
	if (rc || out->rank < 0 || out->rank >= out->size)
		return -EPROTO;
	rc = wire_field(call, "ring-left", &out->left);
	return rc ? rc : wire_field(call, "ring-right", &out->right);
}

static int ring(struct session *s, const char *value, struct ring_place *out)
{
	struct call call;
	int rc;

	begin(s, &call, "ring", "ring-response");
	pmi_write_int(&call.writer, "ring-count", 1);
	pmi_write_str(&call.writer, "ring-left", value);
	pmi_write_str(&call.writer, "ring-right", value);
	rc = call_run(&call);
	if (!rc)
		rc = take_ring(s, &call, out);
	call_end(&call);
	return rc;
}

/*
 * Slurm's stock plugin cuts values at a ';', so they travel encoded. Other
 * servers do not know the command, and some end the job over it.
 */
static int pmi2_ring(struct session *s, const char *value,
		     struct ring_place *out)
{
	struct value text = { NULL, 0 };
	int rc;

	if (!s->settings.slurm)
		return -ENOTSUP;
	rc = text_encode(value, strlen(value), &text);
	if (!rc && text.len >= PMI_VALLEN_MAX)
		rc = -EMSGSIZE;
	if (!rc)
		rc = ring(s, text.data, out);
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

static int pmi2_spawn(struct session *s, const struct spawn_request *request,
		      struct spawn_result *out)
{
	struct call call;
	int rc;

	begin(s, &call, "spawn", "spawn-response");
	pmi_write_int(&call.writer, "ncmds", request->ncommands);
	pmi_write_int(&call.writer, "preputcount", request->npreput);
	write_pairs(&call, "ppkey", "ppval", request->preput,
		    request->npreput);
	for (uint32_t i = 0; i < request->ncommands; i++)
		write_command(&call, &request->commands[i]);
	rc = call_run(&call);
	if (!rc && pmi_message_str(&call.reply, "errcodes"))
		rc = wire_field(&call, "errcodes", &out->errcodes);
	if (!rc && pmi_message_str(&call.reply, "jobid"))
		rc = wire_field(&call, "jobid", &out->jobid);
	call_end(&call);
	return rc;
}

/* ---- the job ---- */

static int pmi2_jobid(struct session *s, struct value *out)
{
	struct call call;

	begin(s, &call, "job-getid", "job-getid-response");
	return wire_take(&call, call_post(&call), "jobid", out);
}

/* Slurm's stock plugin does not answer these two. */
static int join_job(struct session *s, const char *cmd, const char *response,
		    const char *jobid)
{
	struct call call;

	if (s->settings.slurm && !s->extension)
		return -ENOTSUP;
	begin(s, &call, cmd, response);
	pmi_write_str(&call.writer, "jobid", jobid);
	return wire_run(&call);
}

static int pmi2_connect(struct session *s, const char *jobid)
{
	return join_job(s, "job-connect", "job-connect-response", jobid);
}

static int pmi2_disconnect(struct session *s, const char *jobid)
{
	return join_job(s, "job-disconnect", "job-disconnect-response", jobid);
}

static int pmi2_abort(struct session *s, bool world, int code,
		      const char *text)
{
	struct call call;

	begin(s, &call, "abort", "abort-response");
	pmi_write_bool(&call.writer, "isworld", world);
	pmi_write_int(&call.writer, "exitcode", code);
	pmi_write_str(&call.writer, "msg", text);
	return call_send_only(&call);
}

static int pmi2_finalize(struct session *s)
{
	struct call call;

	begin(s, &call, "finalize", "finalize-response");
	stamps_write(&s->stamps, &call.writer);
	return wire_run(&call);
}

const struct wire_ops wire_pmi2 = {
	.put = pmi2_put,
	.fence = pmi2_fence,
	.get = pmi2_get,
	.node_put = pmi2_node_put,
	.node_get = pmi2_node_get,
	.job_attr = pmi2_job_attr,
	.publish = pmi2_publish,
	.unpublish = pmi2_unpublish,
	.lookup = pmi2_lookup,
	.ring = pmi2_ring,
	.spawn = pmi2_spawn,
	.jobid = pmi2_jobid,
	.connect = pmi2_connect,
	.disconnect = pmi2_disconnect,
	.abort = pmi2_abort,
	.finalize = pmi2_finalize,
};

/* ---- with the extension ---- */

/* Post a request with the batch. It stays as it is when there is no memory. */
static int post_batch(struct call *call, struct buf *batch)
{
	int rc;

	pmi_write_bytes(&call->writer, EXT_KEY_RECORDS, batch->data, batch->len);
	rc = call_close(call);
	if (rc) {
		call_end(call);
		return rc;
	}
	buf_free(batch);
	return wire_post(call);
}

/* Make room in the batch: its records are posted as `call`. */
static int post_put(struct session *s, struct buf *batch, struct call *call)
{
	begin(s, call, EXT_CMD_PUT, EXT_CMD_PUT "-response");
	return post_batch(call, batch);
}

static int finish_put(struct session *s, struct call *call)
{
	int rc = call_wait(call);

	call_end(call);
	if (rc)
		kvs_batch_lost(&s->kvs, rc);
	return rc;
}

/* Puts collect in the session; the fence takes them along. */
static int extended_put(struct session *s, const char *key, size_t key_len,
			const void *value, size_t value_len)
{
	struct buf *batch;
	struct call call;
	bool posted;
	int rc = kvs_batch_lock(&s->kvs, &batch), refused = 0;

	posted = !rc && batch->len &&
		 batch->len + key_len + value_len > KVS_BATCH_MAX;
	if (posted)
		rc = post_put(s, batch, &call);
	posted = posted && !rc;
	if (!rc)
		rc = record_append(batch, key, key_len, value, value_len);
	kvs_batch_unlock(&s->kvs);
	if (posted)
		refused = finish_put(s, &call);
	return refused ? refused : rc;
}

static int post_fence(struct session *s, struct call *call)
{
	struct buf *batch;
	int rc = kvs_batch_lock(&s->kvs, &batch);

	if (!rc) {
		begin(s, call, EXT_CMD_FENCE, EXT_CMD_FENCE "-response");
		rc = post_batch(call, batch);
	}
	kvs_batch_unlock(&s->kvs);
	return rc;
}

/* -ENOSPC: the batch does not fit, or no cell is free. */
static int enter_slot(struct session *s, struct call *call)
{
	struct buf *batch;
	int rc = kvs_batch_lock(&s->kvs, &batch);

	if (!rc)
		rc = slots_client_enter(s->slots, &(struct slot_request){
			.kind = SLOT_FENCE,
			.response = EXT_CMD_FENCE "-response",
			.data = batch->data,
			.len = batch->len,
		}, call);
	if (!rc)
		buf_free(batch);
	kvs_batch_unlock(&s->kvs);
	return rc;
}

/* The slot when the batch fits, else the socket; the agent keeps the order. */
static int extended_fence(struct session *s, struct call *call)
{
	int rc;

	if (!s->slots)
		return post_fence(s, call);
	slots_client_lock(s->slots);
	rc = enter_slot(s, call);
	if (rc == -ENOSPC) {
		rc = post_fence(s, call);
		slots_client_posted(s->slots, rc);
	}
	slots_client_unlock(s->slots);
	return rc;
}

static int extended_ring(struct session *s, const char *value,
			 struct ring_place *out)
{
	int rc = -ENOSPC;

	if (s->slots)
		rc = slots_client_ring(s->slots, value, strlen(value), out);
	return rc == -ENOSPC ? ring(s, value, out) : rc;
}

/* A response would say nothing; who does not wait for one ends sooner. */
static int extended_finalize(struct session *s)
{
	struct call call;
	int rc = conn_error(s->conn);

	if (rc)
		return rc;
	begin(s, &call, "finalize", "finalize-response");
	pmi_write_bool(&call.writer, EXT_KEY_SILENT, true);
	stamps_write(&s->stamps, &call.writer);
	return call_send_only(&call);
}

const struct wire_ops wire_extended = {
	.put = extended_put,
	.fence = extended_fence,
	.get = pmi2_get,
	.node_put = pmi2_node_put,
	.node_get = pmi2_node_get,
	.job_attr = pmi2_job_attr,
	.publish = pmi2_publish,
	.unpublish = pmi2_unpublish,
	.lookup = pmi2_lookup,
	.ring = extended_ring,
	.spawn = pmi2_spawn,
	.jobid = pmi2_jobid,
	.connect = pmi2_connect,
	.disconnect = pmi2_disconnect,
	.abort = pmi2_abort,
	.finalize = extended_finalize,
};
