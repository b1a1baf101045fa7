/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire form of control messages: u8 type, u32 origin, u32 id, u32 rank,
 * u32 code, name, text, body, the last three as pack_bytes.
 */
#include "libpmi/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/coder.h"

void control_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

bool control_has_reply(enum control_type type)
{
	return type <= CONTROL_NAMES;
}

/* A text inside a message or the input, without a NUL. */
struct text {
	const void *data;
	size_t len;
};

static struct text text_of(const char *text)
{
	return (struct text){ text, text ? strlen(text) : 0 };
}

static void code_line(struct coder *c, struct text *t)
{
	code_limited(c, &t->data, &t->len, CONTROL_TEXT_MAX);
	CODE_CHECK(c, !t->len || !memchr(t->data, '\0', t->len));
}

/* The message's own texts stay unchanged. */
static void code_msg(struct coder *c, struct control_msg *msg, struct text *name,
		     struct text *text)
{
	CODE_ENUM(c, &msg->type, CONTROL_TYPES);
	code_u32(c, &msg->origin);
	code_u32(c, &msg->id);
	code_u32(c, &msg->rank);
	code_i32(c, &msg->code);
	code_line(c, name);
	code_line(c, text);
	code_limited(c, &msg->body, &msg->body_len, CONTROL_BODY_MAX);
}

int control_pack(struct buf *b, const struct control_msg *msg)
{
	struct text name = text_of(msg->name), text = text_of(msg->text);
	struct coder c = { .out = b };
	size_t start = b->len;

	if (name.len > CONTROL_TEXT_MAX || text.len > CONTROL_TEXT_MAX ||
	    msg->body_len > CONTROL_BODY_MAX)
		return -EMSGSIZE;
	code_msg(&c, (struct control_msg *)msg, &name, &text);
	return coder_wrote(&c, start);
}

static char *copy_text(struct text t)
{
	return strndup(t.data, t.len);
}

static int unpack(const void *data, size_t len, struct control_msg *msg,
		  struct text *name, struct text *text)
{
	struct coder c = { .out = NULL };

	cursor_init(&c.in, data, len);
	code_msg(&c, msg, name, text);
	return coder_end(&c);
}

int control_text(const void *data, size_t len, char out[CONTROL_TEXT_MAX + 1])
{
	struct control_msg msg;
	struct text name, text;

	if (unpack(data, len, &msg, &name, &text))
		return -EPROTO;
	memcpy(out, text.data, text.len);
	out[text.len] = '\0';
	control_printable(out);
	return 0;
}

int control_unpack(const void *data, size_t len, struct control_msg *msg)
{
	struct text name, text;
	int rc = unpack(data, len, msg, &name, &text);

	if (rc)
		return rc;
	msg->name = copy_text(name);
	msg->text = copy_text(text);
	if (msg->name && msg->text)
		return 0;
	control_free(msg);
	return -ENOMEM;
}

int control_peek(const void *data, size_t len, enum control_type *type,
		 uint32_t *origin)
{
	struct cursor c;

	cursor_init(&c, data, len);
	*type = unpack_u8(&c);
	*origin = unpack_u32(&c);
	return cursor_ok(&c) && *type < CONTROL_TYPES ? 0 : -EPROTO;
}

void control_free(struct control_msg *msg)
{
	free(msg->name);
	free(msg->text);
	msg->name = msg->text = NULL;
}
