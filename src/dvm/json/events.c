/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that no request has asked for, or that answer one later. */
#include "dvm/json/json_private.h"

#include <stdlib.h>
#include <string.h>

#include "libutil/base64.h"

/* ---- output ---- */

/* The number of characters that text_of_bytes needs as a line of JSON. */
static size_t text_size(const unsigned char *data, size_t len)
{
	size_t size = 0;

	for (size_t i = 0; i < len; i++)
		if (data[i] >= 0x80 || data[i] == '"' || data[i] == '\\' ||
		    (data[i] < 0x20 && strchr("\b\f\n\r\t", data[i]) && data[i]))
			size += 2;
		else
			size += data[i] < 0x20 ? 6 : 1;
	return size;
}

static json_t *base64_of(const void *data, size_t len)
{
	char *text = malloc(BASE64_LEN(len) + 1);
	json_t *out;

	if (!text)
		return NULL;
	base64_encode(data, len, text);
	out = json_stringn_nocheck(text, BASE64_LEN(len));
	free(text);
	return out;
}

/*
 * Add output as text, or as base64 where that is shorter: a NUL as text has six characters.
 */
static json_t *output(uint64_t task, const struct dvm_output_msg *m)
{
	const void *data = m->data.data;
	size_t len = m->data.len;
	bool is_text = text_size(data, len) <= BASE64_LEN(len);

	return json_pack("{s:s,s:I,s:i,s:i,s:o}",
		"ev", "output", "id", (json_int_t)task,
		"rank", (int)m->rank, "fd", (int)m->fd, is_text ? "data" : "base64",
		is_text ? text_of_bytes(data, len) : base64_of(data, len));
}

/* ---- nodes ---- */

json_t *event_nodes(const struct silent_node *nodes, size_t count)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:o,s:f,s:f}",
			"name", text_of_name(nodes[i].name), "silent", nodes[i].silent,
			"until", nodes[i].until));
	return list;
}

static json_t *ranks_of(const struct dvm_bytes *packed)
{
	json_t *list = json_array();
	struct dvm_rank r;
	struct cursor c;

	cursor_init(&c, packed->data, packed->len);
	while (cursor_left(&c) && !dvm_rank_unpack(&c, &r))
		json_array_append_new(list, json_pack(
			"{s:i,s:I,s:o,s:f}", "rank", (int)r.rank,
			"pid", (json_int_t)r.process,
			"state", text_of_bytes(&r.state, 1), "cpu", r.cpu_us / 1e6));
	return list;
}

static json_t *told(const struct head_event *e)
{
	const struct dvm_told *m = e->told.m;
	bool pmi = m->what == DVM_TOLD_PMI;
	json_t *o = pmi ? json_pack("{s:s,s:o}", "ev", "told_pmi", "status",
				    text_of_bytes(m->data.data, m->data.len)) :
			  json_pack("{s:s,s:o,s:b}", "ev", "told", "ranks",
				    ranks_of(&m->data), "pmi", m->pmi);

	if (m->file_stall_ms && e->told.outputs)
		json_object_set_new(o, "file_stall", json_pack("{s:s,s:f}",
			"dir", e->told.outputs, "seconds", m->file_stall_ms / 1e3));
	json_object_set_new(o, "id", json_integer((json_int_t)e->told.task));
	json_object_set_new(o, "index", json_integer(m->about.node));
	json_object_set_new(o, "node", text_of_name(e->told.node));
	return o;
}

static json_t *grown(const struct head_event *e)
{
	const char *tag = e->grown.tag;
	json_t *o = e->grown.why ? json_pack("{s:s,s:o}", "ev", "error", "why",
					     text_of_name(e->grown.why)) :
				   json_pack("{s:s,s:i}", "ev", "ok", "nodes",
					     (int)e->grown.nodes);

	if (tag)
		json_object_set_new(o, "tag", json_loads(tag, JSON_DECODE_ANY | JSON_ALLOW_NUL,
							 NULL));
	return o;
}

/* ---- all ---- */

static json_t *event(const struct head_event *e)
{
	switch (e->type) {
	case EVENT_NODE:
		return json_pack("{s:s,s:o,s:s,s:o,s:I}", "ev", "node",
				 "name", text_of_name(e->node.name), "state", e->node.state,
				 "why", text_of_name(e->node.why),
				 "tasks", (json_int_t)e->node.tasks);
	case EVENT_OUTPUT:
		return output(e->output.task, e->output.m);
	case EVENT_SPAWNED:
		return json_pack("{s:s,s:I,s:I}", "ev", "spawned",
				 "id", (json_int_t)e->spawned.task,
				 "parent", (json_int_t)e->spawned.parent);
	case EVENT_UNREACHED:
		return json_pack("{s:s,s:o}", "ev", "unreached", "nodes",
				 event_nodes(e->unreached.nodes, e->unreached.count));
	case EVENT_TOLD:
		return told(e);
	case EVENT_GROWN:
		return grown(e);
	case EVENT_UNSAFE:
		return json_pack("{s:s,s:s}", "ev", "unsafe", "why", e->unsafe);
	}
	return NULL;
}

int event_write(const struct head_event *e, struct buf *out)
{
	int rc = text_append(out, event(e));

	return rc ? rc : buf_puts(out, "\n");
}

const struct head_format dvm_json = {
	.read_task = spec_read_text,
	.write_spawned = spec_write_spawned,
	.write_event = event_write,
	.write_result = result_write,
	.close_results = result_close,
};
