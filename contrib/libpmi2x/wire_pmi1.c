/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on the PMI-1 wire, for servers that know no other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "entry.h"
#include "job.h"
#include "wire.h"

static int pmi1_put(struct job *job, const char *key, size_t key_len,
		    const void *value, size_t value_len)
{
	struct call call;
	const char *kvsname;
	int rc = wire_job_name(job, &kvsname);

	if (rc)
		return rc;
	call_begin(&call, job->conn, "put", "put_result");
	pmi_write_str(&call.writer, "kvsname", kvsname);
	pmi_write_bytes(&call.writer, "key", key, key_len);
	pmi_write_bytes(&call.writer, "value", value, value_len);
	return wire_run(&call);
}

static int pmi1_fence(struct job *job, struct call *call)
{
	call_begin(call, job->conn, "barrier_in", "barrier_out");
	return wire_post(call);
}

static int pmi1_barrier_group(struct job *job, const char *group, int tag)
{
	struct call call;

	call_begin(&call, job->conn, "barrier_in", "barrier_out");
	call.tag = tag;
	pmi_write_str(&call.writer, "group", group);
	return wire_run(&call);
}

static int pmi1_get(struct job *job, const char *jobid, int source,
		    const char *key, struct value *out)
{
	int rc = jobid ? 0 : wire_job_name(job, &jobid);

	if (rc)
		return rc;
	return wire_absent(wire_ask(job, "value", out, "get", "get_result",
				    "kvsname", jobid, "key", key, NULL));
}

/* PMI-1 has no node attributes. */
static int pmi1_node_put(struct job *job, const char *name,
			 const char *value)
{
	return -ENOTSUP;
}

static int pmi1_node_get(struct job *job, const char *name, bool wait,
			 struct value *out)
{
	return wait ? -ENOTSUP : -ENOENT;
}

/* PMI-1 has one attribute of its own; the mapping is a key of the KVS. */
static int pmi1_job_attr(struct job *job, const char *name,
			 struct value *out)
{
	if (strcmp(name, "universeSize"))
		return pmi1_get(job, NULL, -1, name, out);
	return wire_absent(wire_ask(job, "size", out, "get_universe_size",
				    "universe_size", NULL));
}

static int pmi1_publish(struct job *job, const char *name, const char *port)
{
	return wire_tell(job, "publish_name", "publish_result",
			 "service", name, "port", port, NULL);
}

static int pmi1_unpublish(struct job *job, const char *name)
{
	return wire_tell(job, "unpublish_name", "unpublish_result",
			 "service", name, NULL);
}

static int pmi1_lookup(struct job *job, const char *name, struct value *port)
{
	return wire_absent(wire_ask(job, "port", port, "lookup_name",
				    "lookup_result", "service", name, NULL));
}

static int pmi1_ring(struct job *job, const char *value,
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

static int pmi1_spawn(struct job *job, const struct spawn_request *request,
		      struct spawn_result *out)
{
	struct call call;
	int rc = 0;

	call_begin_raw(&call, job->conn, "spawn_result");
	for (uint32_t i = 0; !rc && i < request->ncommands; i++)
		rc = put_command(&call.request, request, i);
	if (!rc)
		rc = call_run(&call);
	if (!rc && pmi_message_str(&call.reply, "errcodes"))
		rc = field_value(&call.reply, "errcodes", &out->errcodes);
	call_end(&call);
	return rc;
}

/* ---- the job ---- */

static int pmi1_jobid(struct job *job, struct value *out)
{
	return wire_ask(job, "kvsname", out, "get_my_kvsname", "my_kvsname",
			NULL);
}

static int pmi1_connect(struct job *job, const char *jobid)
{
	return -ENOTSUP;
}

static int pmi1_abort(struct job *job, bool world, int code,
		      const char *text)
{
	struct call call;

	if (!world)
		return 0;
	call_begin(&call, job->conn, "abort", "");
	pmi_write_int(&call.writer, "exitcode", code);
	return call_send_only(&call);
}

static int pmi1_finalize(struct job *job)
{
	struct call call;

	call_begin(&call, job->conn, "finalize", "finalize_ack");
	rank_trace_write(&job->trace, &call.writer);
	return wire_run(&call);
}

const struct wire_ops wire_pmi1 = {
	.put = pmi1_put,
	.fence = pmi1_fence,
	.barrier_group = pmi1_barrier_group,
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
