/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that both protocols have, and the codes of their results. */
#include "api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kvs.h"
#include "libutil/decimal.h"
#include "pmi2.h"
#include "print_error.h"
#include "wire.h"

#define SERVER_CODE_MAX PMI2_ERR_INVALID_SIZE /* same in both protocols */

static const struct {
	int error;
	int code;
} codes[] = {
	{ 0, PMI2_SUCCESS },
	{ -ENXIO, PMI2_ERR_INIT },
	{ -ECHILD, PMI2_ERR_INIT },
	{ -EALREADY, PMI2_ERR_INIT },
	{ -ENOMEM, PMI2_ERR_NOMEM },
	{ -EBUSY, PMI2_ERR_NOMEM },
	{ -EINVAL, PMI2_ERR_INVALID_ARG },
	{ -ENOENT, PMI2_ERR_INVALID_KEY },
	{ -ENAMETOOLONG, PMI2_ERR_INVALID_KEY_LENGTH },
	{ -EMSGSIZE, PMI2_ERR_INVALID_VAL_LENGTH },
	{ -ENOBUFS, PMI2_ERR_INVALID_LENGTH },
};

int pmi1_code(int rc)
{
	if (rc > 0)
		return rc <= SERVER_CODE_MAX ? rc : PMI2_FAIL;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].error == rc)
			return codes[i].code;
	return PMI2_FAIL;
}

int pmi2_code(int rc)
{
	return rc > SERVER_CODE_MAX ? PMI2_ERR_OTHER : pmi1_code(rc);
}

int job_rank(struct job *job, int *out)
{
	*out = job->rank;
	return 0;
}

int job_size(struct job *job, int *out)
{
	*out = job->size;
	return 0;
}

int api_get_number(api_number *read, int *out)
{
	return SESSION_CALL(out, s, read(&s->job, out));
}

static int copy_name(struct job *job, char *to, int size)
{
	const char *name;
	int rc;

	if (size <= 0)
		return -ENOBUFS;
	rc = wire_job_name(job, &name);
	if (!rc && !copy_text(to, size, name, strlen(name)))
		rc = -ENOBUFS;
	return rc;
}

int api_get_name(char *to, int size)
{
	return SESSION_CALL(to, s, copy_name(&s->job, to, size));
}

int api_fence(void)
{
	return SESSION_CALL(true, s, kvs_fence(&s->job));
}

/* ---- names ---- */

int api_publish(const char *name, const char *port)
{
	return SESSION_CALL(name && port, s,
			    s->job.ops->publish(&s->job, name, port));
}

int api_unpublish(const char *name)
{
	return SESSION_CALL(name, s, s->job.ops->unpublish(&s->job, name));
}

static int lookup(struct job *job, const char *name, char *port, int size)
{
	struct value v = { NULL, 0 };
	int rc = job->ops->lookup(job, name, &v);

	if (!rc && !copy_text(port, size, v.data, v.len))
		rc = -ENOBUFS;
	value_free(&v);
	return rc;
}

int api_lookup(const char *name, char *port, int size)
{
	return SESSION_CALL(name && port && size > 0, s,
			    lookup(&s->job, name, port, size));
}

/* ---- keys ---- */

int api_find(const char *jobid, const char *key, const char **value,
	     size_t *len)
{
	struct session *s = session_peek();
	const char *own;

	if (!s)
		return -ENXIO;
	if (jobid) {
		own = atomic_load_explicit(&s->job.name, memory_order_acquire);
		if (!own || strcmp(jobid, own))
			return -ENXIO;
	}
	return kvs_find(&s->job, key, value, len);
}

/* ---- jobs ---- */

static int spawn(struct job *job, const struct spawn_source *from, char jobid[],
		 int jobid_size, int errors[])
{
	struct spawn_request *r;
	int rc = spawn_draft(from, &r);

	if (!rc)
		rc = spawn_run(job, r, jobid, jobid_size, errors);
	spawn_draft_free(r);
	return rc;
}

int api_spawn(const struct spawn_source *from, char jobid[], int jobid_size,
	      int errors[])
{
	return SESSION_CALL(spawn_source_ok(from), s,
			    spawn(&s->job, from, jobid, jobid_size, errors));
}

int parse_ints(const char *text, int array[], int max)
{
	int count = 0;

	for (; count < max; text++) {
		if (!decimal_int(&text, &array[count++]))
			return -EPROTO;
		if (*text == '\0')
			break;
		if (*text != ',')
			return -EPROTO;
	}
	return count;
}

_Noreturn void abort_job(bool world, int status, const char *text)
{
	int rc;
	struct session *s = session_enter(&rc);

	if (!text)
		text = "";
	/* The agent of mpi/pmi2x reports the text; others drop it. */
	if (*text && !(s && s->job.extension))
		print_error("%s\n", text);
	if (s) {
		s->job.ops->abort(&s->job, world, status, text);
		session_leave(s, 0);
	}
	exit(status);
}
