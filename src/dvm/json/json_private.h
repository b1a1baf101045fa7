/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the files of the JSON layer share. */
#pragma once

#include <jansson.h>

#include "dvm/core/head_requests.h"
#include "dvm/json/dvm_json.h"
#include "dvm/json/text.h"

#define LIST_COMMAND_MAX 256 /* bytes of arguments, in lists and with failures */

/* ---- text.c ---- */

/* A name as JSON: as it is, where it is text. */
json_t *text_of_name(const char *name);
/* Append a value to a line; one reference is taken over. -ENOMEM, also for NULL. */
int text_append(struct buf *out, json_t *value);

/* ---- answers.c ---- */

/* Answer a request, which may have a tag; a reference to the event is taken over. */
void client_answer(struct dvm_head *h, struct head_client *c, json_t *request, json_t *event);
/* As above, but sent when the journal is safe up to this position. */
void client_answer_at(struct dvm_head *h, struct head_client *c, json_t *request,
		      json_t *event, uint64_t at);
void client_refuse(struct dvm_head *h, struct head_client *c, json_t *request,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- select.c ---- */

typedef void (*task_fn)(struct dvm_head *h, struct head_task *t, json_t *request,
			uint32_t client);
/*
 * Call fn for the tasks of "ids", or, with "all": true or a "name", for those that have not
 * ended. *count: their number. *unkept: ended tasks whose results are not kept. False: the
 * client got an error.
 */
bool client_for_tasks(struct dvm_head *h, struct head_client *c, json_t *request,
		      task_fn fn, size_t *count, size_t *unkept);
/* The task of "id"; NULL: the client got an error. */
struct head_task *client_find_task(struct dvm_head *h, struct head_client *c,
				   json_t *request);

/* ---- submit.c ---- */

/* The request {"op":"submit", ...}. */
void submit_request(struct dvm_head *h, struct head_client *c, json_t *request);

/* ---- spec.c ---- */

/* True: a text in the value has a NUL, at any depth. */
bool spec_has_nul(json_t *v);
/* Read a task into r->spec. */
void spec_read(struct spec_reading *r, json_t *json);
/* For head_format. */
void spec_read_text(struct spec_reading *r, const struct dvm_bytes *text);
int spec_write_spawned(const struct head_task *parent, const struct dvm_spawn *m,
		       struct buf *out);

/* ---- results.c ---- */

/* A new reference to a task's command, at most `max` bytes of it, and its state; or NULL. */
json_t *result_listed(const struct dvm_head *h, const struct head_task *t, size_t max);
json_t *result_status(const struct dvm_head *h);
/* For head_format. */
int result_write(const struct dvm_head *h, const struct head_task *t, bool first,
		 struct buf *out);
int result_close(struct buf *out);

/* ---- events.c ---- */

/* A new reference to a list of nodes, for "unreached". */
json_t *event_nodes(const struct silent_node *nodes, size_t count);
/* For head_format. */
int event_write(const struct head_event *e, struct buf *out);
