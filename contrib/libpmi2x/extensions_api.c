/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMIX_* functions of pmi2x.h. */
#include "pmi2x.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "config.h"
#include "conn.h"
#include "kvs.h"
#include "libshm/region.h"
#include "libshm/slots_layout.h"
#include "pmi2.h"
#include "ring.h"

/* ---- ring ---- */

int PMIX_Ring(const char value[], int *rank, int *size, char left[],
	      char right[], int maxvalue)
{
	bool valid = value && rank && size && left && right && maxvalue >= 1;
	struct ring_place at;
	int rc = SESSION_CALL(valid, s, ring_exchange(&s->job, value, &at));

	if (rc)
		return pmi2_code(rc);
	*rank = at.rank;
	*size = at.size;
	copy_text(left, maxvalue, at.left.data, at.left.len);
	copy_text(right, maxvalue, at.right.data, at.right.len);
	value_free(&at.left);
	value_free(&at.right);
	return PMI2_SUCCESS;
}

/* ---- allgather ---- */

static int start_gather(const void *value, int len, const struct sink *sink,
			PMIX_Request *request)
{
	if ((value || !len) && (len < 0 || len > PMI2X_MAX_VALLEN))
		return PMI2_ERR_INVALID_VAL_LENGTH;
	return pmi2_code(SESSION_CALL(value || !len, s,
				      request_gather(&s->requests, value, len,
						     0, sink, request)));
}

int PMIX_Iallgather_n(const void *value, int len, void *buffer, int maxlength,
		      int lengths[], PMIX_Request *request)
{
	struct sink sink = {
		.buffer = buffer,
		.slot_len = maxlength,
		.lengths = lengths,
	};

	if (!buffer || maxlength < 1 || !request)
		return PMI2_ERR_INVALID_ARG;
	return start_gather(value, len, &sink, request);
}

int PMIX_Allgather_n(const void *value, int len, void *buffer, int maxlength,
		     int lengths[])
{
	PMIX_Request request;
	int code = PMIX_Iallgather_n(value, len, buffer, maxlength, lengths,
				     &request);

	return code ? code : PMIX_Wait(request);
}

int PMIX_Iallgather(const char value[], void *buffer, PMIX_Request *request)
{
	if (!value)
		return PMI2_ERR_INVALID_ARG;
	if (strlen(value) >= PMI2X_MAXLENGTH)
		return PMI2_ERR_INVALID_VAL_LENGTH;
	return PMIX_Iallgather_n(value, strlen(value), buffer, PMI2X_MAXLENGTH,
				 NULL, request);
}

int PMIX_Allgather(const char value[], void *buffer)
{
	PMIX_Request request;
	int code = PMIX_Iallgather(value, buffer, &request);

	return code ? code : PMIX_Wait(request);
}

int PMIX_Iallgather_view(const void *value, int len, PMIX_View **view,
			 PMIX_Request *request)
{
	struct sink sink = { .view = view };

	if (!view || !request)
		return PMI2_ERR_INVALID_ARG;
	*view = NULL;
	return start_gather(value, len, &sink, request);
}

const void *PMIX_View_value(const PMIX_View *view, int rank, int *len)
{
	const void *value;
	size_t n;

	if (!view || rank < 0 || (uint32_t)rank >= view->result.count)
		return NULL;
	value = gathered_value(&view->result, rank, &n);
	if (len)
		*len = (int)n;
	return value;
}

int PMIX_View_free(PMIX_View *view)
{
	int rc;
	struct session *s = view ? session_enter(&rc) : NULL;

	if (view)
		view_free(s ? &s->views : NULL, view);
	if (s)
		session_leave(s, 0);
	return PMI2_SUCCESS;
}

/* ---- fence, completion ---- */

int PMIX_KVS_Ifence(PMIX_Request *request)
{
	return pmi2_code(SESSION_CALL(request, s,
				      request_fence(&s->requests, request)));
}

int PMIX_Wait(PMIX_Request request)
{
	return pmi2_code(SESSION_CALL(true, s,
				      request_wait(&s->requests, request)));
}

int PMIX_Test(PMIX_Request request, int *flag)
{
	return pmi2_code(SESSION_CALL(flag, s,
				      request_test(&s->requests, request, flag)));
}

/* ---- fetch ---- */

int PMIX_KVS_Ifetch(int rank, const char *key, void *value, size_t *len,
		    int timeout_ms, PMIX_Request *request)
{
	const struct fetch_sink sink = { .value = value, .len = len };
	bool valid = key && len && request && (value || !*len);

	return pmi2_code(SESSION_CALL(valid, s,
				      request_fetch(&s->requests, rank, key,
						    timeout_ms, &sink,
						    request)));
}

int PMIX_KVS_Fetch(int rank, const char *key, void *value, size_t *len,
		   int timeout_ms)
{
	PMIX_Request request;
	int code = PMIX_KVS_Ifetch(rank, key, value, len, timeout_ms, &request);

	return code ? code : PMIX_Wait(request);
}

/* ---- binary values ---- */

int PMIX_KVS_Put_n(const char key[], const void *value, int len)
{
	return pmi2_code(SESSION_CALL(key && len >= 0 && (value || !len), s,
				      kvs_put_bytes(&s->job, key, value, len)));
}

int PMIX_KVS_Get_n(const char key[], void *value, int maxlength, int *len)
{
	struct value v = { NULL, 0 };
	bool valid = key && maxlength >= 0 && (value || !maxlength);
	int rc = SESSION_CALL(valid, s, kvs_get_bytes(&s->job, key, &v));

	if (!rc && maxlength)
		memcpy(value, v.data,
		       v.len < (size_t)maxlength ? v.len : (size_t)maxlength);
	if (!rc && len)
		*len = (int)v.len;
	value_free(&v);
	return pmi2_code(rc);
}

/* ---- what there is ---- */

const char *PMIX_Version(void)
{
	return PACKAGE_VERSION;
}

static void say_wire(const struct job *job, char *out, size_t size)
{
	const char *name = "none";

	if (job->conn)
		name = conn_protocol(job->conn) == PMI_PROTOCOL_2 ? "pmi-2"
								: "pmi-1";
	snprintf(out, size, "%s", name);
}

static void say_extension(const struct job *job, char *out, size_t size)
{
	snprintf(out, size, "%d", job->extension);
}

static void say_region(const struct job *job, char *out, size_t size)
{
	snprintf(out, size, "%d", job->region ? REGION_VERSION : 0);
}

static void say_region_size(const struct job *job, char *out, size_t size)
{
	snprintf(out, size, "%zu", job->region_size);
}

static void say_slots(const struct job *job, char *out, size_t size)
{
	snprintf(out, size, "%d", job->slots ? SLOTS_VERSION : 0);
}

static void say_fetch(const struct job *job, char *out, size_t size)
{
	snprintf(out, size, "%d", job->fetches);
}

static void say_nodes(const struct job *job, char *out, size_t size)
{
	snprintf(out, size, "%d", job->nodes);
}

static void say_build(const struct job *job, char *out, size_t size)
{
	snprintf(out, size, "%s", job->server_build ? job->server_build : "");
}

static void say_refusal(const struct job *job, char *out, size_t size)
{
	out[0] = '\0';
	if (job->conn)
		conn_refusal(job->conn, out, size);
}

static const struct {
	const char *name;
	void (*say)(const struct job *job, char *out, size_t size);
} capabilities[] = {
	{ "wire", say_wire },
	{ "extension", say_extension },
	{ "region", say_region },
	{ "region-size", say_region_size },
	{ "slots", say_slots },
	{ "fetch", say_fetch },
	{ "nodes", say_nodes },
	{ "server-build", say_build },
	{ "refusal", say_refusal },
};

static int say_capability(const struct job *job, const char *name,
			  char *out, size_t size)
{
	size_t n = sizeof(capabilities) / sizeof(capabilities[0]);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(name, capabilities[i].name))
			continue;
		capabilities[i].say(job, out, size);
		return 0;
	}
	return -ENOENT;
}

int PMIX_Capabilities(const char name[], char value[], int valuelen)
{
	return pmi2_code(SESSION_CALL(name && value && valuelen >= 1, s,
				      say_capability(&s->job, name, value,
						     valuelen)));
}
