/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that the tables of operations share. */
#include "wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "entry.h"
#include "job.h"

int wire_absent(int rc)
{
	return rc == -EREMOTEIO || rc > 0 ? -ENOENT : rc;
}

int wire_take(struct call *call, int rc, const char *key, struct value *out)
{
	bool found = true;

	if (!rc)
		rc = call_wait(call);
	if (!rc && pmi_message_bool(&call->reply, "found", &found) == -EINVAL)
		rc = -EPROTO;
	if (!rc && !found)
		rc = -ENOENT;
	if (!rc)
		rc = field_value(&call->reply, key, out);
	call_end(call);
	return rc;
}

int wire_wait(struct call *call)
{
	int rc = call_wait(call);

	call_end(call);
	return rc;
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

static void begin(struct job *job, struct call *call, const char *cmd,
		  const char *response, va_list fields)
{
	const char *key;

	call_begin(call, job->conn, cmd, response);
	while ((key = va_arg(fields, const char *)))
		pmi_write_str(&call->writer, key, va_arg(fields, const char *));
}

int wire_tell(struct job *job, const char *cmd, const char *response, ...)
{
	struct call call;
	va_list fields;

	va_start(fields, response);
	begin(job, &call, cmd, response, fields);
	va_end(fields);
	return wire_run(&call);
}

int wire_ask(struct job *job, const char *want, struct value *out,
	     const char *cmd, const char *response, ...)
{
	struct call call;
	va_list fields;

	va_start(fields, response);
	begin(job, &call, cmd, response, fields);
	va_end(fields);
	return wire_take(&call, call_post(&call), want, out);
}

int wire_job_name(struct job *job, const char **out)
{
	struct value v = { NULL, 0 };
	char *known = atomic_load(&job->name);
	int rc;

	if (!known) {
		rc = job->ops->jobid(job, &v);
		if (rc)
			return rc;
		if (atomic_compare_exchange_strong(&job->name, &known, v.data))
			known = v.data;
		else
			free(v.data);
	}
	*out = known;
	return 0;
}
