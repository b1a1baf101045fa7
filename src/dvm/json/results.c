/* SPDX-License-Identifier: BSD-3-Clause */
/* The state and results of tasks, and the state of the DVM. */
#include "dvm/json/json_private.h"

#include <string.h>

#define RESULT_FIRST "{\"ev\":\"ended\",\"tasks\":["
#define RESULT_LAST "]}\n"
#define NODES_SHOWN_MAX 64 /* nodes of a task that are listed by name */
#define CHARACTER_MAX 4    /* bytes of a character of UTF-8 */

static void set_bytes(json_t *o, const char *key, const char *data, size_t len)
{
	if (data)
		json_object_set_new(o, key, text_of_bytes(data, len));
}

/* ---- tasks ---- */

static const char *state_name(const struct head_task *t)
{
	switch (t->state) {
	case TASK_QUEUED:
	case TASK_HELD:
	case TASK_COMING:
		return "queued";
	case TASK_PLACED:
	case TASK_LAUNCHED:
		return "running";
	default:
		return t->cancelled ? "cancelled" : t->status ? "failed" : "done";
	}
}

static json_t *nodes_of(const struct dvm_head *h, const struct head_task *t)
{
	const struct ledger_placement *where = task_run(t)->placement;
	json_t *list = json_array();

	for (uint32_t i = 0; where && i < where->count && i < NODES_SHOWN_MAX; i++)
		json_array_append_new(list, text_of_name(head_node_name(
			h, where->parts[i].node)));
	return list;
}

/* The complete output, where that is longer than "out" and "err". */
static void set_files(json_t *o, const struct head_task *t)
{
	const struct task_files *f = task_run(t)->files;
	const struct dvm_bytes names = { f->names, f->len };
	const char *dir = t->profile->outputs ? t->profile->outputs : "";
	json_t *list = json_array();

	for (const char *n = dvm_texts_next(&names, NULL); n; n = dvm_texts_next(&names, n))
		json_array_append_new(list, json_sprintf("%s/%s", dir, n));
	json_object_set_new(o, "files", list);
	if (f->unkept)
		json_object_set_new(o, "files_lost", text_of_name(f->unkept));
}

static void set_result(json_t *o, const struct head_task *t)
{
	const struct task_run *r = task_run(t);

	json_object_set_new(o, "code", json_integer(dvm_exit_code(t->status)));
	if (t->status & 0x7f)
		json_object_set_new(o, "signal", json_integer(t->status & 0x7f));
	if (t->status)
		json_object_set_new(o, "rank", json_integer(t->rank));
	if (t->too_long)
		json_object_set_new(o, "too_long", json_true());
	if (t->why)
		json_object_set_new(o, "why", text_of_bytes(t->why, strlen(t->why)));
	set_bytes(o, "out", r->out, r->out_len);
	set_bytes(o, "err", r->err, r->err_len);
	if (r->files)
		set_files(o, t);
	if (r->output_lost)
		json_object_set_new(o, "output_lost", json_true());
	json_object_set_new(o, "usage", json_pack("[f,f,I]", r->user_us / 1e6,
		r->system_us / 1e6, (json_int_t)r->peak_kib));
}

/* The beginning of a text, without a part of a character at its end. */
static json_t *text_begin(const char *text, size_t len)
{
	json_t *out = NULL;

	for (size_t cut = 0; !out && cut < CHARACTER_MAX && cut <= len; cut++)
		out = json_stringn(text, len - cut);
	return out;
}

/* The arguments of the command, up to `max` bytes of them. */
static void set_command(json_t *o, const struct head_task *t, size_t max)
{
	const struct dvm_bytes argv = { t->argv, t->argv_len };
	const struct task_texts *texts = task_texts(t);
	json_t *list = json_array();
	const char *a = t->argv ? dvm_texts_next(&argv, NULL) : NULL;
	size_t len;

	for (; a && max; a = dvm_texts_next(&argv, a)) {
		len = strlen(a);
		json_array_append_new(list, text_begin(a, len < max ? len : max));
		if (len >= max)
			break;
		max -= len + 1;
	}
	json_object_set_new(o, "argv", list);
	if (a || t->argv_cut)
		json_object_set_new(o, "argv_cut", json_true());
	if (t->line)
		json_object_set_new(o, "line", json_integer((json_int_t)t->line));
	if (texts->path)
		json_object_set_new(o, "path", json_string(texts->path));
	if (texts->error)
		json_object_set_new(o, "error", json_string(texts->error));
	if (texts->cwd)
		json_object_set_new(o, "cwd", json_string(texts->cwd));
	if (t->number)
		json_object_set_new(o, "number", json_integer((json_int_t)t->number));
}

static json_t *describe(const struct dvm_head *h, const struct head_task *t)
{
	json_t *o = json_object();

	json_object_set_new(o, "id", json_integer((json_int_t)t->id));
	if (task_texts(t)->name)
		json_object_set_new(o, "name", text_of_name(task_texts(t)->name));
	if (t->spawned)
		json_object_set_new(o, "parent",
				    json_integer((json_int_t)t->spawned->parent_id));
	json_object_set_new(o, "state", json_string(state_name(t)));
	json_object_set_new(o, "ranks", json_integer(t->ranks));
	json_object_set_new(o, "instance", json_integer(t->instance));
	json_object_set_new(o, "t", json_pack("[f,f,f,f]",
		t->submitted_ns / 1e9, task_run(t)->placed_ns / 1e9, task_run(t)->started_ns / 1e9,
		t->ended_ns / 1e9));
	json_object_set_new(o, "nodes", nodes_of(h, t));
	if (t->state == TASK_ENDED)
		set_result(o, t);
	return o;
}

json_t *result_listed(const struct dvm_head *h, const struct head_task *t, size_t max)
{
	json_t *o = describe(h, t);

	set_command(o, t, max);
	return o;
}

int result_write(const struct dvm_head *h, const struct head_task *t, bool first,
		 struct buf *out)
{
	bool failed = task_failed_so_far(t);
	int rc = buf_puts(out, first ? RESULT_FIRST : ",");

	return rc ? rc : text_append(out, failed ? result_listed(h, t, LIST_COMMAND_MAX) :
						   describe(h, t));
}

int result_close(struct buf *out)
{
	return buf_puts(out, RESULT_LAST);
}

/* ---- the DVM ---- */

/* "none", "written", or the error of writing. */
static const char *journal_state(const struct dvm_head *h)
{
	const int error = journal_failure(h);

	return !h->journal.on ? "none" : error ? strerror(-error) : "written";
}

/* The node has come again, and is listed as it is now. */
static bool has_come_again(const struct head_node *n)
{
	return n->lost && n->namesake != NODE_NONE;
}

static const char *node_state(const struct head_node *n)
{
	if (n->lost)
		return n->left ? "left" : "lost";
	return n->leaving ? "leaving" : n->drained ? "drained" : "up";
}

json_t *result_status(const struct dvm_head *h)
{
	json_t *nodes = json_array();
	struct dvm_traffic traffic;

	for (uint32_t i = 0; head_is_ready(h) && i < h->options.nodes; i++) {
		const struct head_node *n = &h->nodes[i];

		if (has_come_again(n))
			continue;
		json_array_append_new(nodes, json_pack("{s:o,s:s,s:s*,s:i,s:i,s:i}",
			"name", text_of_name(n->name),
			"state", node_state(n),
			"why", n->lost ? NULL : n->drained_why,
			"cores", (int)ledger_node_has(h->ledger, i)->cores,
			"gpus", (int)ledger_node_has(h->ledger, i)->gpus,
			"free", n->lost ? 0 :
				(int)ledger_node_free_cores(h->ledger, i)));
	}
	dvm_head_traffic(h, &traffic);
	return json_pack("{s:s,s:o,s:s,s:b,s:i,s:I,s:I,s:I,s:I,s:s,s:[I,I],s:o}",
			 "ev", "status", "dvm", text_of_name(h->options.name),
			 "build", h->options.build,
			 "ready", head_is_ready(h),
			 "expected", (int)h->options.nodes,
			 "queued", (json_int_t)h->nqueued,
			 "running", (json_int_t)h->nrunning,
			 "ended", (json_int_t)h->done,
			 "failed", (json_int_t)h->failed,
			 "journal", journal_state(h),
			 "traffic", (json_int_t)traffic.messages, (json_int_t)traffic.bytes,
			 "nodes", nodes);
}
