/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of pmi2.h. */
#include "pmi2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "kvs.h"
#include "wire.h"

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

	if (rc)
		return pmi2_code(rc);
	s = session_enter(&rc);
	if (!s)
		return pmi2_code(rc);
	set(spawned, s->job.spawned);
	set(size, s->job.size);
	set(rank, s->job.rank);
	set(appnum, s->job.appnum);
	return pmi2_code(session_leave(s, 0));
}

int PMI2_Finalize(void)
{
	return pmi2_code(session_finish());
}

int PMI2_Initialized(void)
{
	return session_peek() != NULL;
}

int PMI2_Abort(int flag, const char msg[])
{
	abort_job(flag != 0, EXIT_FAILURE, msg);
}

/* ---- the job ---- */

int PMI2_Job_GetId(char jobid[], int jobid_size)
{
	return pmi2_code(api_get_name(jobid, jobid_size));
}

int PMI2_Job_GetRank(int *rank)
{
	return pmi2_code(api_get_number(job_rank, rank));
}

int PMI2_Info_GetSize(int *size)
{
	return pmi2_code(api_get_number(job_size, size));
}

int PMI2_Job_Connect(const char jobid[], PMI2_Connect_comm_t *conn)
{
	if (conn)
		*conn = (PMI2_Connect_comm_t){ .isMaster = -1 };
	return pmi2_code(SESSION_CALL(jobid && conn, s,
				      s->job.ops->connect(&s->job, jobid)));
}

int PMI2_Job_Disconnect(const char jobid[])
{
	return pmi2_code(SESSION_CALL(jobid, s,
				      s->job.ops->disconnect(&s->job, jobid)));
}

/* ---- spawn ---- */

static struct spawn_pair read_info(const void *from, int i)
{
	const struct MPID_Info *infos = from;

	return (struct spawn_pair){ infos[i].key, infos[i].value };
}

static struct spawn_pair read_preput(const void *from, int i)
{
	const struct MPID_Info *const *vector = from;

	return vector[i] ? read_info(vector[i], 0) :
			   (struct spawn_pair){ NULL, NULL };
}

int PMI2_Job_Spawn(int count, const char *cmds[], int argcs[],
		   const char **argvs[], const int maxprocs[],
		   const int info_keyval_sizes[],
		   const struct MPID_Info *info_keyval_vectors[],
		   int preput_keyval_size,
		   const struct MPID_Info *preput_keyval_vector[],
		   char jobId[], int jobIdSize, int errors[])
{
	const struct spawn_source from = {
		.count = count,
		.cmds = cmds,
		.argcs = argcs,
		.argvs = argvs,
		.maxprocs = maxprocs,
		.info_sizes = info_keyval_sizes,
		.infos = (const void *const *)info_keyval_vectors,
		.read_info = read_info,
		.npreput = preput_keyval_size,
		.preput = preput_keyval_vector,
		.read_preput = read_preput,
	};

	return pmi2_code(api_spawn(&from, jobId, jobIdSize, errors));
}

/* ---- the key-value space ---- */

int PMI2_KVS_Put(const char key[], const char value[])
{
	return pmi2_code(SESSION_CALL(key && value, s,
				      kvs_put(&s->job, key, value)));
}

int PMI2_KVS_Fence(void)
{
	return pmi2_code(api_fence());
}

static void hand_out(const char *from, size_t len, char value[], int maxvalue,
		     int *vallen)
{
	bool whole = false;

	if (maxvalue > 0)
		whole = copy_text(value, maxvalue, from, len);
	set(vallen, whole ? (int)len : -(int)len);
}

static int get_slowly(struct job *job, const char *jobid, int source,
		      const char key[], char value[], int maxvalue, int *vallen)
{
	struct value v = { NULL, 0 };
	int rc = kvs_get(job, jobid, source, key, &v);

	if (!rc)
		hand_out(v.data, v.len, value, maxvalue, vallen);
	value_free(&v);
	return rc;
}

int PMI2_KVS_Get(const char *jobid, int src_pmi_id, const char key[],
		 char value[], int maxvalue, int *vallen)
{
	const char *from;
	size_t len;

	if (!key || maxvalue < 0 || (!value && maxvalue))
		return PMI2_ERR_INVALID_ARG;
	switch (api_find(jobid, key, &from, &len)) {
	case 1:
		hand_out(from, len, value, maxvalue, vallen);
		return PMI2_SUCCESS;
	case 0:
		return PMI2_ERR_INVALID_KEY;
	default:
		return pmi2_code(SESSION_CALL(true, s,
				 get_slowly(&s->job, jobid, src_pmi_id, key,
					    value, maxvalue, vallen)));
	}
}

/* ---- attributes ---- */

typedef int attr_reader(struct job *job, const char *name, struct value *out);

static int node_attr(struct job *job, const char *name, struct value *out)
{
	return job->ops->node_get(job, name, false, out);
}

static int awaited_node_attr(struct job *job, const char *name,
			     struct value *out)
{
	return job->ops->node_get(job, name, true, out);
}

static int job_attr(struct job *job, const char *name, struct value *out)
{
	return job->ops->job_attr(job, name, out);
}

/* Read an attribute; *found tells whether there is one. */
static int read_attr(struct job *job, attr_reader *reader, const char *name,
		     struct value *out, int *found)
{
	int rc = -ENAMETOOLONG;

	if (strlen(name) < PMI2_MAX_KEYLEN)
		rc = reader(job, name, out);
	*found = rc == 0;
	return rc == -ENOENT ? 0 : rc;
}

static int get_attr(attr_reader *reader, const char *name, char value[],
		    int valuelen, int *found)
{
	struct value v = { NULL, 0 };
	int code;

	if (!name || !value || valuelen < 1 || !found)
		return PMI2_ERR_INVALID_ARG;
	code = pmi2_code(SESSION_CALL(true, s,
			 read_attr(&s->job, reader, name, &v, found)));
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
	code = pmi2_code(SESSION_CALL(true, s,
			 read_attr(&s->job, reader, name, &v, found)));
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

static int put_attr(struct job *job, const char *name, const char *value)
{
	if (strlen(name) >= PMI2_MAX_KEYLEN)
		return -ENAMETOOLONG;
	if (strlen(value) >= PMI2_MAX_ATTRVALUE)
		return -EMSGSIZE;
	return job->ops->node_put(job, name, value);
}

int PMI2_Info_PutNodeAttr(const char name[], const char value[])
{
	return pmi2_code(SESSION_CALL(name && value, s,
				      put_attr(&s->job, name, value)));
}

/* ---- names ---- */

int PMI2_Nameserv_publish(const char service_name[],
			  const struct MPID_Info *info_ptr, const char port[])
{
	return pmi2_code(api_publish(service_name, port));
}

int PMI2_Nameserv_lookup(const char service_name[],
			 const struct MPID_Info *info_ptr, char port[],
			 int portLen)
{
	return pmi2_code(api_lookup(service_name, port, portLen));
}

int PMI2_Nameserv_unpublish(const char service_name[],
			    const struct MPID_Info *info_ptr)
{
	return pmi2_code(api_unpublish(service_name));
}
