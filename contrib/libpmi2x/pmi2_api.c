/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of pmi2.h. */
#include "pmi2.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "job.h"

/* ---- the session ---- */

static void set(int *to, int value)
{
	if (to)
		*to = value;
}

int PMI2_Init(int *spawned, int *size, int *rank, int *appnum)
{
	int rc = session_start();
	struct session *s;
	int code = pmi2_code(rc);

	if (rc)
		return code;
	s = pmi2_enter(&code);
	if (!s)
		return code;
	set(spawned, s->spawned);
	set(size, s->size);
	set(rank, s->rank);
	set(appnum, s->appnum);
	return pmi2_leave(s, 0);
}

int PMI2_Finalize(void)
{
	return pmi2_code(session_finish());
}

int PMI2_Initialized(void)
{
	return session_exists();
}

int PMI2_Abort(int flag, const char msg[])
{
	abort_job(flag != 0, EXIT_FAILURE, msg);
}

/* ---- the job ---- */

int PMI2_Job_GetId(char jobid[], int jobid_size)
{
	struct session *s;
	int code;

	if (!jobid)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	return s ? pmi2_leave(s, copy_jobid(s, jobid, jobid_size)) : code;
}

int PMI2_Job_GetRank(int *rank)
{
	struct session *s;
	int code;

	if (!rank)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	if (!s)
		return code;
	*rank = s->rank;
	return pmi2_leave(s, 0);
}

int PMI2_Info_GetSize(int *size)
{
	struct session *s;
	int code;

	if (!size)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	if (!s)
		return code;
	*size = s->size;
	return pmi2_leave(s, 0);
}

int PMI2_Job_Connect(const char jobid[], PMI2_Connect_comm_t *conn)
{
	struct session *s;
	int code;

	if (!jobid || !conn)
		return PMI2_ERR_INVALID_ARG;
	memset(conn, 0, sizeof(*conn));
	conn->isMaster = -1;
	s = pmi2_enter(&code);
	return s ? pmi2_leave(s, s->ops->connect(s, jobid)) : code;
}

int PMI2_Job_Disconnect(const char jobid[])
{
	struct session *s;
	int code;

	if (!jobid)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	return s ? pmi2_leave(s, s->ops->disconnect(s, jobid)) : code;
}

/* ---- spawn ---- */

static int draft_info(struct spawn_request *r, struct spawn_command *c, int n,
		      const struct MPID_Info *info)
{
	struct spawn_pair *pairs;

	if (n < 0 || n > SPAWN_INFO_MAX || (n && !info))
		return -EINVAL;
	if (n == 0)
		return 0;
	pairs = spawn_draft_pairs(r, c, n);
	if (!pairs)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		pairs[i].key = info[i].key;
		pairs[i].value = info[i].value;
	}
	return 0;
}

static int draft_preput(struct spawn_request *r, int n,
			const struct MPID_Info *const vector[])
{
	struct spawn_pair *pairs;

	if (n < 0 || n > SPAWN_PREPUT_MAX || (n && !vector))
		return -EINVAL;
	if (n == 0)
		return 0;
	pairs = spawn_draft_pairs(r, NULL, n);
	if (!pairs)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		pairs[i].key = vector[i] ? vector[i]->key : NULL;
		pairs[i].value = vector[i] ? vector[i]->value : NULL;
	}
	return 0;
}

static int draft_command(struct spawn_command *c, const char *program,
			 int argc, const char **argv, int maxprocs)
{
	if (argc < 0 || (argc && !argv) || maxprocs < 1)
		return -EINVAL;
	c->program = (char *)program;
	c->argv = (char **)argv;
	c->argc = argc;
	c->nprocs = maxprocs;
	return 0;
}

int PMI2_Job_Spawn(int count, const char *cmds[], int argcs[],
		   const char **argvs[], const int maxprocs[],
		   const int info_keyval_sizes[],
		   const struct MPID_Info *info_keyval_vectors[],
		   int preput_keyval_size,
		   const struct MPID_Info *preput_keyval_vector[],
		   char jobId[], int jobIdSize, int errors[])
{
	struct spawn_request *r;
	struct session *s;
	int code, rc;

	if (count < 1 || count > SPAWN_COMMANDS_MAX || !cmds || !maxprocs)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	if (!s)
		return code;
	r = spawn_draft(count);
	rc = r ? draft_preput(r, preput_keyval_size, preput_keyval_vector)
	       : -ENOMEM;
	for (int i = 0; !rc && i < count; i++) {
		rc = draft_command(&r->commands[i], cmds[i],
				   argcs ? argcs[i] : 0,
				   argvs ? argvs[i] : NULL, maxprocs[i]);
		if (!rc && info_keyval_sizes && info_keyval_vectors)
			rc = draft_info(r, &r->commands[i],
					info_keyval_sizes[i],
					info_keyval_vectors[i]);
	}
	if (!rc)
		rc = spawn_run(s, r, jobId, jobIdSize, errors);
	spawn_draft_free(r);
	return pmi2_leave(s, rc);
}

/* ---- the key-value space ---- */

int PMI2_KVS_Put(const char key[], const char value[])
{
	struct session *s;
	int code;

	if (!key || !value)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	return s ? pmi2_leave(s, kvs_put(s, key, value)) : code;
}

int PMI2_KVS_Fence(void)
{
	int code;
	struct session *s = pmi2_enter(&code);

	return s ? pmi2_leave(s, kvs_fence(s)) : code;
}

static void hand_out(const char *from, size_t len, char value[], int maxvalue,
		     int *vallen)
{
	bool whole = false;

	if (maxvalue > 0)
		whole = copy_text(value, maxvalue, from, len);
	set(vallen, whole ? (int)len : -(int)len);
}

/*
 * The way without a lock. 1: found; 0: there is no such key; -ENXIO: take the
 * other way.
 */
static int find(const char *jobid, const char key[], const char **value,
		size_t *len)
{
	struct session *s = session_peek();
	const char *own;

	if (!s)
		return -ENXIO;
	if (jobid) {
		own = atomic_load_explicit(&s->jobid, memory_order_acquire);
		if (!own || strcmp(jobid, own))
			return -ENXIO;
	}
	return kvs_find(s, key, value, len);
}

static int get_slowly(const char *jobid, int source, const char key[],
		      char value[], int maxvalue, int *vallen)
{
	struct value v = { NULL, 0 };
	struct session *s;
	int code, rc;

	s = pmi2_enter(&code);
	if (!s)
		return code;
	rc = kvs_get(s, jobid, source, key, &v);
	if (!rc)
		hand_out(v.data, v.len, value, maxvalue, vallen);
	value_free(&v);
	return pmi2_leave(s, rc);
}

int PMI2_KVS_Get(const char *jobid, int src_pmi_id, const char key[],
		 char value[], int maxvalue, int *vallen)
{
	const char *from;
	size_t len;

	if (!key || maxvalue < 0 || (!value && maxvalue))
		return PMI2_ERR_INVALID_ARG;
	switch (find(jobid, key, &from, &len)) {
	case 1:
		hand_out(from, len, value, maxvalue, vallen);
		return PMI2_SUCCESS;
	case 0:
		return PMI2_ERR_INVALID_KEY;
	default:
		return get_slowly(jobid, src_pmi_id, key, value, maxvalue,
				  vallen);
	}
}

/* ---- attributes ---- */

typedef int attr_reader(struct session *s, const char *name,
			struct value *out);

static int node_attr(struct session *s, const char *name, struct value *out)
{
	return s->ops->node_get(s, name, false, out);
}

static int awaited_node_attr(struct session *s, const char *name,
			     struct value *out)
{
	return s->ops->node_get(s, name, true, out);
}

static int job_attr(struct session *s, const char *name, struct value *out)
{
	return s->ops->job_attr(s, name, out);
}

/* Read an attribute; *found tells whether there is one. */
static int read_attr(attr_reader *reader, const char *name, struct value *out,
		     int *found)
{
	struct session *s;
	int code, rc = -ENAMETOOLONG;

	s = pmi2_enter(&code);
	if (!s)
		return code;
	if (strlen(name) < PMI2_MAX_KEYLEN)
		rc = reader(s, name, out);
	*found = rc == 0;
	return pmi2_leave(s, rc == -ENOENT ? 0 : rc);
}

static int get_attr(attr_reader *reader, const char *name, char value[],
		    int valuelen, int *found)
{
	struct value v = { NULL, 0 };
	int code;

	if (!name || !value || valuelen < 1 || !found)
		return PMI2_ERR_INVALID_ARG;
	code = read_attr(reader, name, &v, found);
	if (!code && *found)
		copy_text(value, valuelen, v.data, v.len);
	value_free(&v);
	return code;
}

static int get_ints(attr_reader *reader, const char *name, int array[],
		    int arraylen, int *outlen, int *found)
{
	struct value v = { NULL, 0 };
	int code, n;

	if (!name || !array || arraylen < 1 || !outlen || !found)
		return PMI2_ERR_INVALID_ARG;
	code = read_attr(reader, name, &v, found);
	if (!code && *found) {
		n = parse_ints(v.data, array, arraylen);
		if (n < 0)
			code = PMI2_ERR_INVALID_VAL;
		else
			*outlen = n;
	}
	value_free(&v);
	return code;
}

int PMI2_Info_GetNodeAttr(const char name[], char value[], int valuelen,
			  int *found, int waitfor)
{
	return get_attr(waitfor ? awaited_node_attr : node_attr, name, value,
			valuelen, found);
}

int PMI2_Info_GetNodeAttrIntArray(const char name[], int array[], int arraylen,
				  int *outlen, int *found)
{
	return get_ints(node_attr, name, array, arraylen, outlen, found);
}

int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen,
			 int *found)
{
	return get_attr(job_attr, name, value, valuelen, found);
}

int PMI2_Info_GetJobAttrIntArray(const char name[], int array[], int arraylen,
				 int *outlen, int *found)
{
	return get_ints(job_attr, name, array, arraylen, outlen, found);
}

int PMI2_Info_PutNodeAttr(const char name[], const char value[])
{
	struct session *s;
	int code, rc;

	if (!name || !value)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	if (!s)
		return code;
	if (strlen(name) >= PMI2_MAX_KEYLEN)
		rc = -ENAMETOOLONG;
	else if (strlen(value) >= PMI2_MAX_ATTRVALUE)
		rc = -EMSGSIZE;
	else
		rc = s->ops->node_put(s, name, value);
	return pmi2_leave(s, rc);
}

/* ---- names ---- */

int PMI2_Nameserv_publish(const char service_name[],
			  const struct MPID_Info *info_ptr, const char port[])
{
	struct session *s;
	int code;

	if (!service_name || !port)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	return s ? pmi2_leave(s, s->ops->publish(s, service_name, port))
		 : code;
}

int PMI2_Nameserv_lookup(const char service_name[],
			 const struct MPID_Info *info_ptr, char port[],
			 int portLen)
{
	struct value v = { NULL, 0 };
	struct session *s;
	int code, rc;

	if (!service_name || !port || portLen < 1)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	if (!s)
		return code;
	rc = s->ops->lookup(s, service_name, &v);
	if (!rc && !copy_text(port, portLen, v.data, v.len))
		rc = -ENOBUFS;
	value_free(&v);
	return pmi2_leave(s, rc);
}

int PMI2_Nameserv_unpublish(const char service_name[],
			    const struct MPID_Info *info_ptr)
{
	struct session *s;
	int code;

	if (!service_name)
		return PMI2_ERR_INVALID_ARG;
	s = pmi2_enter(&code);
	return s ? pmi2_leave(s, s->ops->unpublish(s, service_name)) : code;
}
