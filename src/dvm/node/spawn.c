/* SPDX-License-Identifier: BSD-3-Clause */
/* Spawns, between the PMI of a task and the head. */
#include "dvm/node/spawn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/spawn_script.h"
#include "libshm/records.h"

/* ---- for the head ---- */

static int put_text(struct buf *out, const char *text)
{
	return buf_append(out, text, strlen(text) + 1);
}

static int put_script(struct buf *out, const struct spawn_request *r)
{
	int rc = put_text(out, "/bin/sh");

	rc = rc ? rc : put_text(out, "-c");
	rc = rc ? rc : spawn_script(out, r);
	return rc ? rc : buf_append(out, "", 1);
}

int spawn_put_argv(struct buf *out, const struct spawn_request *r)
{
	const struct spawn_command *c = &r->commands[0];
	int rc;

	if (spawn_wants_script(r))
		return put_script(out, r);
	rc = put_text(out, c->program);
	for (uint32_t i = 0; !rc && i < c->argc; i++)
		rc = put_text(out, c->argv[i]);
	return rc;
}

static int put_preput(struct buf *out, const struct spawn_request *r)
{
	struct buf records;
	int rc = 0;

	buf_init(&records, DVM_SPAWN_MAX);
	for (uint32_t i = 0; !rc && i < r->npreput; i++)
		rc = record_append(&records, r->preput[i].key, strlen(r->preput[i].key),
				   r->preput[i].value, strlen(r->preput[i].value));
	rc = rc ? rc : pack_bytes(out, records.data, records.len);
	buf_free(&records);
	return rc;
}

/* u32 commands, of each: u32 ranks; jobid of the spawner; records. */
int spawn_put_about(struct buf *out, const struct spawn_request *r, const char *jobid)
{
	int rc = pack_u32(out, r->ncommands);

	for (uint32_t i = 0; !rc && i < r->ncommands; i++)
		rc = pack_u32(out, r->commands[i].nprocs);
	rc = rc ? rc : pack_str(out, jobid);
	return rc ? rc : put_preput(out, r);
}

void spawn_note_ignored(const struct spawn_request *r, const struct log_hook *log)
{
	static const char honoured[] = " wdir path env ";
	char key[64];

	for (uint32_t k = 0; k < r->ncommands; k++)
		for (uint32_t i = 0; i < r->commands[k].ninfo; i++) {
			snprintf(key, sizeof(key), " %.60s ", r->commands[k].info[i].key);
			if (!strstr(honoured, key))
				log_debug(log, "spawn: ignoring info key%s", key);
		}
}

/* ---- from the head ---- */

static int read_apps(struct spawn_origin *o, struct cursor *c, uint32_t ranks)
{
	uint32_t sum = 0;

	o->napps = unpack_u32(c);
	if (!cursor_ok(c) || !o->napps || o->napps > ranks)
		return -EPROTO;
	o->app_sizes = calloc(o->napps, sizeof(*o->app_sizes));
	if (!o->app_sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->napps; i++) {
		o->app_sizes[i] = unpack_u32(c);
		if (o->app_sizes[i] > ranks - sum)
			return -EPROTO;
		sum += o->app_sizes[i];
	}
	return sum == ranks ? 0 : -EPROTO;
}

static int read_rest(struct spawn_origin *o, struct cursor *c)
{
	size_t len, count;
	const char *jobid = unpack_bytes(c, DVM_JOBID_MAX, &len);
	const void *preput = unpack_bytes(c, DVM_SPAWN_MAX, &o->preput_len);

	if (!cursor_done(c) || records_check(preput, o->preput_len, &count))
		return -EPROTO;
	o->jobid = strndup(jobid, len);
	o->preput = malloc(o->preput_len + 1);
	if (!o->jobid || !o->preput)
		return -ENOMEM;
	if (o->preput_len)
		memcpy(o->preput, preput, o->preput_len);
	return 0;
}

int spawn_origin_read(struct spawn_origin *out, const struct dvm_bytes *about,
		      uint32_t ranks)
{
	struct cursor c;
	int rc;

	*out = (struct spawn_origin){ 0 };
	cursor_init(&c, about->data, about->len);
	rc = read_apps(out, &c, ranks);
	rc = rc ? rc : read_rest(out, &c);
	if (rc)
		spawn_origin_free(out);
	return rc;
}

void spawn_origin_free(struct spawn_origin *o)
{
	free(o->jobid);
	free(o->app_sizes);
	free(o->preput);
	*o = (struct spawn_origin){ 0 };
}

void spawn_origin_describe(const struct spawn_origin *o, struct pmi_step *step)
{
	step->spawned = true;
	step->spawner_jobid = o->jobid;
	step->app_sizes = o->app_sizes;
	step->napps = o->napps;
	step->preput = o->preput;
	step->preput_len = o->preput_len;
}
