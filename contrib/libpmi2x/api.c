/* SPDX-License-Identifier: BSD-3-Clause */
/* Translates results to PMI error codes; copies values out; aborts. */
#include "api.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "pmi2.h"
#include "print_error.h"

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

int pmi2_leave(struct session *s, int rc)
{
	session_leave(s);
	return pmi2_code(rc);
}

int pmi1_leave(struct session *s, int rc)
{
	session_leave(s);
	return pmi1_code(rc);
}

struct session *pmi2_enter(int *code)
{
	struct session *s = session_enter(code);

	*code = pmi2_code(*code);
	return s;
}

struct session *pmi1_enter(int *code)
{
	struct session *s = session_enter(code);

	*code = pmi1_code(*code);
	return s;
}

bool copy_text(char *to, size_t size, const char *from, size_t len)
{
	size_t n = len < size ? len : size - 1;

	if (n)
		memcpy(to, from, n);
	to[n] = '\0';
	return n == len;
}

int copy_jobid(struct session *s, char *to, int size)
{
	const char *jobid;
	int rc;

	if (size <= 0)
		return -ENOBUFS;
	rc = session_jobid(s, &jobid);
	if (!rc && !copy_text(to, size, jobid, strlen(jobid)))
		rc = -ENOBUFS;
	return rc;
}

int parse_ints(const char *text, int array[], int max)
{
	int count = 0;
	char *end;
	long v;

	for (; count < max; text = end + 1) {
		errno = 0;
		v = strtol(text, &end, 10);
		if (errno || end == text || v < INT_MIN || v > INT_MAX)
			return -EPROTO;
		array[count++] = (int)v;
		if (*end == '\0')
			break;
		if (*end != ',')
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
	if (*text && !(s && s->extension))
		print_error("%s\n", text);
	if (s) {
		s->ops->abort(s, world, status, text);
		session_leave(s);
	}
	exit(status);
}
