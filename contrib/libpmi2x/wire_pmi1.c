/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on the PMI-1 wire, for servers that know no other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

static void begin(struct session *s, struct call *call, const char *cmd,
		  const char *response)
{
	call_begin(call, s->conn, cmd, response);
}

/* Any refusal of a look-up means that there is no such thing. */
static int absent_if_refused(int rc)
{
	return rc == -EREMOTEIO || rc > 0 ? -ENOENT : rc;
}

static int begin_kvs(struct session *s, struct call *call, const char *cmd,
		     const char *response)
{
	const char *kvsname;
	int rc = session_jobid(s, &kvsname);

	if (rc)
		return rc;
	begin(s, call, cmd, response);
	pmi_write_str(&call->writer, "kvsname", kvsname);
	return 0;
}

static int pmi1_put(struct session *s, const char *key, size_t key_len,
		    const void *value, size_t value_len)
{
	struct call call;
	int rc = begin_kvs(s, &call, "put", "put_result");

	if (rc)
		return rc;
	pmi_write_bytes(&call.writer, "key", key, key_len);
	pmi_write_bytes(&call.writer, "value", value, value_len);
	return wire_run(&call);
}

static int pmi1_fence(struct session *s, struct call *call)
{
	begin(s, call, "barrier_in", "barrier_out");
	return wire_post(call);
}

static int pmi1_get(struct session *s, const char *jobid, int source,
		    const char *key, struct value *out)
{
	struct call call;
	int rc = 0;

	if (jobid) {
		begin(s, &call, "get", "get_result");
		pmi_write_str(&call.writer, "kvsname", jobid);
	} else {
		rc = begin_kvs(s, &call, "get", "get_result");
	}
	if (rc)
		return rc;
	pmi_write_str(&call.writer, "key", key);
	rc = absent_if_refused(call_run(&call));
	return wire_take(&call, rc, "value", out);
}

/* PMI-1 has no node attributes. */
static int pmi1_node_put(struct session *s, const char *name,
			 const char *value)
{
	return -ENOTSUP;
}

static int pmi1_node_get(struct session *s, const char *name, bool wait,
			 struct value *out)
{
	return wait ? -ENOTSUP : -ENOENT;
}

/* PMI-1 has one attribute of its own; the mapping is a key of the KVS. */
static int pmi1_job_attr(struct session *s, const char *name,
			 struct value *out)
{
	struct call call;
	int rc;

	if (strcmp(name, "universeSize"))
		return pmi1_get(s, NULL, -1, name, out);
	begin(s, &call, "get_universe_size", "universe_size");
	rc = absent_if_refused(call_run(&call));
	return wire_take(&call, rc, "size", out);
}

static int pmi1_publish(struct session *s, const char *name, const char *port)
{
	struct call call;

	begin(s, &call, "publish_name", "publish_result");
	pmi_write_str(&call.writer, "service", name);
	pmi_write_str(&call.writer, "port", port);
	return wire_run(&call);
}

static int pmi1_unpublish(struct session *s, const char *name)
{
	struct call call;

	begin(s, &call, "unpublish_name", "unpublish_result");
	pmi_write_str(&call.writer, "service", name);
	return wire_run(&call);
}

static int pmi1_lookup(struct session *s, const char *name, struct value *port)
{
	struct call call;
	int rc;

	begin(s, &call, "lookup_name", "lookup_result");
	pmi_write_str(&call.writer, "service", name);
	rc = absent_if_refused(call_run(&call));
	return wire_take(&call, rc, "port", port);
}

static int pmi1_ring(struct session *s, const char *value,
		     struct ring_place *out)
{
	return -ENOTSUP;
}

/* ---- spawn: one mcmd for each command, one response for all ---- */

static int put_line(struct buf *b, const char *key, const char *value)
{
	if (strchr(value, '\n'))
		return -EINVAL;
	return buf_printf(b, "%s=%s\n", key, value);
}

static int put_indexed(struct buf *b, const char *key, uint32_t i,
		       const char *value)
{
	char name[48];

	snprintf(name, sizeof(name), "%s%u", key, i);
	return put_line(b, name, value);
}

static int put_pairs(struct buf *b, const char *what,
		     const struct spawn_pair *pairs, uint32_t n)
{
	char name[32];
	int rc = buf_printf(b, "%s_num=%u\n", what, n);

	for (uint32_t i = 0; !rc && i < n; i++) {
		snprintf(name, sizeof(name), "%s_key_", what);
		rc = put_indexed(b, name, i, pairs[i].key);
		snprintf(name, sizeof(name), "%s_val_", what);
		if (!rc)
			rc = put_indexed(b, name, i, pairs[i].value);
	}
	return rc;
}

static int put_command(struct buf *b, const struct spawn_request *request,
		       uint32_t i)
{
	const struct spawn_command *c = &request->commands[i];
	int rc = buf_printf(b, "mcmd=spawn\nnprocs=%u\n", c->nprocs);

	if (!rc)
		rc = put_line(b, "execname", c->program);
	if (!rc)
		rc = buf_printf(b, "totspawns=%u\nspawnssofar=%u\n",
				request->ncommands, i + 1);
	for (uint32_t k = 0; !rc && k < c->argc; k++)
		rc = put_indexed(b, "arg", k + 1, c->argv[k]);
	if (!rc)
		rc = buf_printf(b, "argcnt=%u\n", c->argc);
	if (!rc)
		rc = put_pairs(b, "preput", request->preput, request->npreput);
	if (!rc)
		rc = put_pairs(b, "info", c->info, c->ninfo);
	return rc ? rc : buf_puts(b, "endcmd\n");
}

static int pmi1_spawn(struct session *s, const struct spawn_request *request,
		      struct spawn_result *out)
{
	struct call call;
	int rc = 0;

	call_begin_raw(&call, s->conn, "spawn_result");
	for (uint32_t i = 0; !rc && i < request->ncommands; i++)
		rc = put_command(&call.request, request, i);
	if (!rc)
		rc = call_run(&call);
	if (!rc && pmi_message_str(&call.reply, "errcodes"))
		rc = wire_field(&call, "errcodes", &out->errcodes);
	call_end(&call);
	return rc;
}

/* ---- the job ---- */

static int pmi1_jobid(struct session *s, struct value *out)
{
	struct call call;

	begin(s, &call, "get_my_kvsname", "my_kvsname");
	return wire_take(&call, call_post(&call), "kvsname", out);
}

static int pmi1_connect(struct session *s, const char *jobid)
{
	return -ENOTSUP;
}

static int pmi1_abort(struct session *s, bool world, int code,
		      const char *text)
{
	struct call call;

	if (!world)
		return 0;
	begin(s, &call, "abort", "");
	pmi_write_int(&call.writer, "exitcode", code);
	return call_send_only(&call);
}

static int pmi1_finalize(struct session *s)
{
	struct call call;

	begin(s, &call, "finalize", "finalize_ack");
	stamps_write(&s->stamps, &call.writer);
	return wire_run(&call);
}

const struct wire_ops wire_pmi1 = {
	.put = pmi1_put,
	.fence = pmi1_fence,
	.get = pmi1_get,
	.node_put = pmi1_node_put,
	.node_get = pmi1_node_get,
	.job_attr = pmi1_job_attr,
	.publish = pmi1_publish,
	.unpublish = pmi1_unpublish,
	.lookup = pmi1_lookup,
	.ring = pmi1_ring,
	.spawn = pmi1_spawn,
	.jobid = pmi1_jobid,
	.connect = pmi1_connect,
	.disconnect = pmi1_connect,
	.abort = pmi1_abort,
	.finalize = pmi1_finalize,
};
