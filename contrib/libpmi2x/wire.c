/* SPDX-License-Identifier: BSD-3-Clause */
/* Values read from the wire; what the tables of operations share. */
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/decimal.h"

int value_set(struct value *v, const void *data, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, data, len);
	copy[len] = '\0';
	free(v->data);
	v->data = copy;
	v->len = len;
	return 0;
}

void value_free(struct value *v)
{
	free(v->data);
	v->data = NULL;
	v->len = 0;
}

int wire_field(const struct call *call, const char *key, struct value *out)
{
	const struct pmi_field *f = pmi_message_field(&call->reply, key);

	return f ? value_set(out, f->value, f->value_len) : -EPROTO;
}

int wire_u64(const struct call *call, const char *key, uint64_t *out)
{
	const char *text = pmi_message_str(&call->reply, key);

	return text && decimal_u64(text, 0, UINT64_MAX, out) ? 0 : -EPROTO;
}

int wire_take(struct call *call, int rc, const char *key, struct value *out)
{
	if (!rc)
		rc = call_wait(call);
	if (!rc)
		rc = wire_field(call, key, out);
	call_end(call);
	return rc;
}

int wire_take_found(struct call *call, int rc, struct value *out)
{
	bool found;

	if (!rc)
		rc = call_wait(call);
	if (!rc && pmi_message_bool(&call->reply, "found", &found))
		rc = -EPROTO;
	if (!rc && !found)
		rc = -ENOENT;
	return wire_take(call, rc, "value", out);
}

int wire_run(struct call *call)
{
	int rc = call_run(call);

	call_end(call);
	return rc;
}

int wire_post(struct call *call)
{
	int rc = call_post(call);

	if (rc)
		call_end(call);
	return rc;
}
