/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a batch that earlier runs had: batch_lines.h. */
#include "dvm/cli/batch_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(what) die("%s", what)
#include <uthash.h>

#include "dvm/cli/client.h"
#include "dvm/cli/complete_output.h"
#include "dvm/common/journal_file.h"
#include "dvm/core/history.h"
#include "dvm/json/text.h"
#include "libutil/array.h"

struct known_line {
	char *text;
	size_t done, failed;  /* that the file may have */
	bool in_file;
	size_t *pending;      /* indexes in batch_lines.pending, the next first */
	size_t npending, next, pending_cap;
	UT_hash_handle hh;
};

struct known_id {
	json_int_t id;
	UT_hash_handle hh;
};

static void *need(void *memory)
{
	if (!memory)
		die("out of memory");
	return memory;
}

static struct known_line *line_of(struct batch_lines *b, const char *text)
{
	struct known_line *k;

	HASH_FIND_STR(b->all, text, k);
	if (k)
		return k;
	k = need(calloc(1, sizeof(*k)));
	k->text = need(strdup(text));
	HASH_ADD_KEYPTR(hh, b->all, k->text, strlen(k->text), k);
	return k;
}

static void note_id(struct batch_lines *b, json_int_t id)
{
	struct known_id *k = need(calloc(1, sizeof(*k)));

	k->id = id;
	HASH_ADD(hh, b->ids, id, sizeof(k->id), k);
}

static bool has_id(const struct batch_lines *b, json_int_t id)
{
	struct known_id *k;

	HASH_FIND(hh, b->ids, &id, sizeof(id), k);
	return k;
}

/* A line has ended; one that is cancelled has not, and runs again. */
static void note_end(struct batch_lines *b, const char *text, const char *state, bool retry)
{
	struct known_line *k = line_of(b, text);
	bool done = !strcmp(state, "done");

	if (!done && strcmp(state, "failed"))
		return;
	if (retry && k->failed)
		k->failed--;
	k->done += done;
	k->failed += !done;
}

/* ---- results ---- */

static void read_result(struct batch_lines *b, const char *line, size_t len)
{
	json_t *o = json_loadb(line, len, 0, NULL);
	json_int_t id = json_integer_value(json_object_get(o, "id"));
	bool journal = json_is_true(json_object_get(o, "journal"));

	if (o && !(journal && has_id(b, id)))
		note_end(b, get_text(o, "command"), get_text(o, "state"),
			 json_is_true(json_object_get(o, "retry")));
	if (o && journal && !has_id(b, id))
		note_id(b, id);
	json_decref(o);
}

void batch_lines_read_results(struct batch_lines *b, const char *path)
{
	FILE *in = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	ssize_t n;

	while (in && (n = getline(&line, &size, in)) > 0)
		read_result(b, line, (size_t)n);
	free(line);
	if (in)
		fclose(in);
}

/* ---- the journal ---- */

static void add_pending(struct batch_lines *b, const char *text, json_int_t id, bool retry)
{
	struct known_line *k = line_of(b, text);

	if (array_grow(&b->pending, b->npending, &b->pending_cap, sizeof(*b->pending)) ||
	    array_grow(&k->pending, k->npending, &k->pending_cap, sizeof(*k->pending)))
		die("out of memory");
	b->pending[b->npending] = (struct pending_line){ .id = id, .retry = retry, .of = k };
	k->pending[k->npending++] = b->npending++;
}

static void set_output(json_t *o, const char *key, const struct dvm_bytes *bytes)
{
	if (bytes->len)
		json_object_set_new(o, key, text_of_bytes(bytes->data, bytes->len));
}

static void set_files(json_t *o, const struct journal_end *e, const char *results)
{
	char *dir = complete_output_dir(results);
	json_t *list = json_array();

	for (const char *n = dvm_texts_next(&e->files, NULL); n; n = dvm_texts_next(&e->files, n))
		json_array_append_new(list, json_sprintf("%s/%s", dir, n));
	json_object_set_new(o, "files", list);
	set_output(o, "files_lost", &e->unkept);
	free(dir);
}

static void set_all_output(json_t *o, const struct journal_end *e, const char *results)
{
	if (e->output == JOURNAL_OUTPUT_LOST)
		json_object_set_new(o, "output_lost", json_true());
	set_output(o, "out", &e->out);
	set_output(o, "err", &e->err);
	if (e->files.len || e->unkept.len)
		set_files(o, e, results);
}

static json_t *result_of_journal(const struct history_task *t, const char *results)
{
	const struct journal_end *e = &t->end;
	json_t *why = json_stringn(e->why.len ? e->why.data : "", e->why.len);
	json_t *o = json_pack("{s:I,s:s,s:i,s:[f,f,f,f],s:o?}",
		"id", (json_int_t)t->submit.task, "state", history_state_name(t->state),
		"code", history_code(t), "t", t->submit.submitted_ns / 1e9,
		t->start.placed_ns / 1e9, e->started_ns / 1e9, e->ended_ns / 1e9,
		"why", e->why.len ? why : NULL);

	if (!e->why.len)
		json_decref(why);
	set_all_output(o, e, results);
	return o;
}

/* The client that was to write the result has been killed. The head may still have it. */
static void add_result(const struct batch_lines *b, struct results_file *out,
		       const struct history_task *t, const struct sent_task *of)
{
	json_t *o;

	if (out->fd < 0)
		return;
	o = b->find ? b->find(b->arg, (json_int_t)t->submit.task) : NULL;
	if (!o)
		o = result_of_journal(t, out->path);
	results_file_add(out, of, o);
	json_decref(o);
}

static void read_task(struct batch_lines *b, const struct history_task *t,
		      struct results_file *out)
{
	json_t *task = json_loadb(t->submit.json.data, t->submit.json.len, 0, NULL);
	const char *text = json_string_value(json_array_get(json_object_get(task, "argv"), 2));
	json_int_t id = (json_int_t)t->submit.task;
	bool retry = t->submit.line & (uint64_t)LINE_RETRY;
	const struct sent_task of = {
		.line = (size_t)(t->submit.line & ~(uint64_t)LINE_RETRY),
		.command = text, .journal = true, .retry = retry,
	};

	if (text && (t->state == HISTORY_QUEUED || t->state == HISTORY_RUNNING)) {
		add_pending(b, text, id, retry);
	} else if (text && t->state != HISTORY_CANCELLED && !has_id(b, id)) {
		note_end(b, text, history_state_name(t->state), retry);
		note_id(b, id);
		add_result(b, out, t, &of);
	}
	json_decref(task);
}

static void read_history(struct batch_lines *b, const struct history *h, uint64_t ignore,
			 struct results_file *out)
{
	b->last = h->counts.next_id ? h->counts.next_id - 1 : 0;
	for (size_t i = 0; i < h->ntasks; i++) {
		const struct history_task *t = &h->tasks[i];

		if (t->submit.task > b->last)
			b->last = t->submit.task;
		if (t->submit.line && t->submit.task > ignore)
			read_task(b, t, out);
	}
}

void batch_lines_read_journal(struct batch_lines *b, const char *dir, uint64_t ignore,
			      struct results_file *out)
{
	struct journal_reader in;
	struct history h = { 0 };
	uint32_t version;
	void *data;
	size_t len;
	int rc = journal_file_read(dir, &data, &len);

	if (rc == -ENOENT)
		return;
	rc = rc ? rc : journal_open(&in, data, len, &version);
	if (rc)
		die("the journal in %s cannot be read: %s", dir, strerror(-rc));
	if (history_read(&h, &in))
		die("out of memory");
	read_history(b, &h, ignore, out);
	history_free(&h);
	free(data);
}

/* ---- use ---- */

enum line_state batch_lines_take(struct batch_lines *b, const char *text, size_t line)
{
	struct known_line *k;
	struct pending_line *p;

	HASH_FIND_STR(b->all, text, k);
	if (!k)
		return LINE_NEW;
	k->in_file = true;
	if (k->done) {
		k->done--;
		return LINE_DONE;
	}
	if (k->next < k->npending) {
		p = &b->pending[k->pending[k->next++]];
		p->line = line;
		p->wanted = true;
		k->failed -= p->retry && k->failed;
		return LINE_PENDING;
	}
	if (!k->failed)
		return LINE_NEW;
	k->failed--;
	return LINE_FAILED;
}

const char *batch_lines_text(const struct pending_line *p)
{
	return p->of->text;
}

bool batch_lines_in_file(const struct pending_line *p)
{
	return p->of->in_file;
}

void batch_lines_free(struct batch_lines *b)
{
	struct known_line *k, *next;
	struct known_id *i, *next_id;

	HASH_ITER(hh, b->all, k, next) {
		HASH_DEL(b->all, k);
		free(k->text);
		free(k->pending);
		free(k);
	}
	HASH_ITER(hh, b->ids, i, next_id) {
		HASH_DEL(b->ids, i);
		free(i);
	}
	free(b->pending);
	*b = (struct batch_lines){ 0 };
}
