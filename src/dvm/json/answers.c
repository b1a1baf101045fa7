/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to requests of clients. */
#include "dvm/json/json_private.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_SIZE_MAX ((size_t)256 << 20) /* bytes of an answer */

/* Give the answer the tag of its request. */
void client_answer_at(struct dvm_head *h, struct head_client *c, json_t *request,
		      json_t *event, uint64_t at)
{
	json_t *tag = json_object_get(request, "tag");
	struct buf line;

	if (event && tag)
		json_object_set(event, "tag", tag);
	buf_init(&line, LINE_SIZE_MAX);
	if (text_append(&line, event) || buf_append(&line, "\n", 1))
		client_cut_off(h, c); /* that client would wait forever */
	else
		client_send_at(h, c, line.data, line.len, at);
	buf_free(&line);
}

void client_answer(struct dvm_head *h, struct head_client *c, json_t *request, json_t *event)
{
	client_answer_at(h, c, request, event, 0);
}

void client_refuse(struct dvm_head *h, struct head_client *c, json_t *request,
		   const char *fmt, ...)
{
	char why[DVM_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	client_answer(h, c, request, json_pack("{s:s,s:o}", "ev", "error", "why",
					       text_of_name(why)));
}
