/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire form of control messages: u8 type, u32 origin, u32 id, u32 rank,
 * u32 code, name, text, body, the last three as pack_bytes.
 */
#include "libpmi/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int control_pack(struct buf *b, const struct control_msg *msg)
{
	size_t start = b->len;
	int rc;

	if ((msg->name && strlen(msg->name) > CONTROL_TEXT_MAX) ||
	    (msg->text && strlen(msg->text) > CONTROL_TEXT_MAX) ||
	    msg->body_len > CONTROL_BODY_MAX)
		return -EMSGSIZE;
	rc = pack_u8(b, msg->type);
	if (!rc)
		rc = pack_u32(b, msg->origin);
	if (!rc)
		rc = pack_u32(b, msg->id);
	if (!rc)
		rc = pack_u32(b, msg->rank);
	if (!rc)
		rc = pack_u32(b, msg->code);
	if (!rc)
		rc = pack_str(b, msg->name);
	if (!rc)
		rc = pack_str(b, msg->text);
	if (!rc)
		rc = pack_bytes(b, msg->body, msg->body_len);
	if (rc)
		b->len = start;
	return rc;
}

/* A text inside the input, not yet copied. */
struct text {
	const char *data;
	size_t len;
};

static struct text unpack_text(struct cursor *c)
{
	struct text t;

	t.data = unpack_bytes(c, CONTROL_TEXT_MAX, &t.len);
	if (t.len && memchr(t.data, '\0', t.len))
		c->failed = true;
	return t;
}

static char *copy_text(struct text t)
{
	return strndup(t.data, t.len);
}

/* All but the two texts, which are not yet copied. */
static int unpack(const void *data, size_t len, struct control_msg *msg,
		  struct text *name, struct text *text)
{
	struct cursor c;

	cursor_init(&c, data, len);
	msg->type = unpack_u8(&c);
	msg->origin = unpack_u32(&c);
	msg->id = unpack_u32(&c);
	msg->rank = unpack_u32(&c);
	msg->code = unpack_u32(&c);
	*name = unpack_text(&c);
	*text = unpack_text(&c);
	msg->body = unpack_bytes(&c, CONTROL_BODY_MAX, &msg->body_len);
	return cursor_done(&c) && msg->type < CONTROL_TYPES ? 0 : -EPROTO;
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
