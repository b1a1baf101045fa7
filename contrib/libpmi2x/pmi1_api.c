/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of pmi.h. */
#include "pmi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api.h"
#include "barrier_group.h"
#include "clique.h"
#include "kvs.h"
#include "wire.h"

#define PORT_MAX 1024 /* bytes of a port, NUL included, as the caller has it */

/* ---- the process group ---- */

static int read_spawned(struct job *job, int *out)
{
	*out = job->spawned ? PMI_TRUE : PMI_FALSE;
	return 0;
}

int PMI_Init(int *spawned)
{
	int rc = -EINVAL;

	if (spawned)
		rc = session_start();
	return pmi1_code(rc ? rc : api_get_number(read_spawned, spawned));
}

int PMI_Initialized(PMI_BOOL *initialized)
{
	if (!initialized)
		return PMI_ERR_INVALID_ARG;
	*initialized = session_peek() ? PMI_TRUE : PMI_FALSE;
	return PMI_SUCCESS;
}

int PMI_Finalize(void)
{
	return pmi1_code(session_finish());
}

static int read_appnum(struct job *job, int *out)
{
	*out = job->appnum;
	return 0;
}

static int read_universe(struct job *job, int *out)
{
	struct value v = { NULL, 0 };
	int rc = job->ops->job_attr(job, "universeSize", &v);

	if (!rc && parse_ints(v.data, out, 1) != 1)
		rc = -EPROTO;
	if (rc == -ENOENT)
		rc = job_size(job, out);
	value_free(&v);
	return rc;
}

/* The ranks of this node; just this one when the server does not tell. */
static int read_clique(struct job *job, int ranks[], int max, int *size)
{
	struct value v = { NULL, 0 };
	int rc = job->ops->job_attr(job, "PMI_process_mapping", &v);

	if (!rc) {
		*size = clique_find(v.data, job->rank, job->size, ranks, max);
		rc = *size < 0 ? *size : 0;
	} else if (rc == -ENOENT) {
		if (max > 0)
			ranks[0] = job->rank;
		*size = 1;
		rc = 0;
	}
	value_free(&v);
	return rc;
}

static int read_clique_size(struct job *job, int *out)
{
	return read_clique(job, NULL, 0, out);
}

int PMI_Get_size(int *size)
{
	return pmi1_code(api_get_number(job_size, size));
}

int PMI_Get_rank(int *rank)
{
	return pmi1_code(api_get_number(job_rank, rank));
}

int PMI_Get_universe_size(int *size)
{
	return pmi1_code(api_get_number(read_universe, size));
}

int PMI_Get_appnum(int *appnum)
{
	return pmi1_code(api_get_number(read_appnum, appnum));
}

int PMI_Get_clique_size(int *size)
{
	return pmi1_code(api_get_number(read_clique_size, size));
}

int PMI_Get_clique_ranks(int ranks[], int length)
{
	int n, rc = SESSION_CALL(ranks && length >= 1, s,
				 read_clique(&s->job, ranks, length, &n));

	if (!rc && n > length)
		rc = -ENOBUFS;
	return pmi1_code(rc);
}

int PMI_Barrier(void)
{
	return pmi1_code(api_fence());
}

int PMI_Barrier_group(const int *group, int count, const char *stringtag)
{
	bool listed = group != PMI_GROUP_WORLD && group != PMI_GROUP_SELF &&
		      group != PMI_GROUP_NODE;

	return pmi1_code(SESSION_CALL(!listed || count >= 1, s,
				      barrier_group(&s->job, group, count,
						    stringtag)));
}

int PMI_Abort(int exit_code, const char error_msg[])
{
	abort_job(true, exit_code, error_msg);
}

int PMI_Get_id(char id_str[], int length)
{
	return pmi1_code(api_get_name(id_str, length));
}

int PMI_Get_kvs_domain_id(char id_str[], int length)
{
	return PMI_Get_id(id_str, length);
}

static int limit(int *length, int value)
{
	if (!length)
		return PMI_ERR_INVALID_ARG;
	*length = value;
	return PMI_SUCCESS;
}

int PMI_Get_id_length_max(int *length)
{
	return limit(length, PMI_KVSNAME_MAX);
}

/* ---- names ---- */

int PMI_Publish_name(const char service_name[], const char port[])
{
	return pmi1_code(api_publish(service_name, port));
}

int PMI_Unpublish_name(const char service_name[])
{
	return pmi1_code(api_unpublish(service_name));
}

int PMI_Lookup_name(const char service_name[], char port[])
{
	int rc = api_lookup(service_name, port, PORT_MAX);

	return pmi1_code(rc == -ENOENT ? -EREMOTEIO : rc);
}

/* ---- the key-value space ---- */

int PMI_KVS_Get_my_name(char kvsname[], int length)
{
	return PMI_Get_id(kvsname, length);
}

int PMI_KVS_Get_name_length_max(int *length)
{
	return limit(length, PMI_KVSNAME_MAX);
}

int PMI_KVS_Get_key_length_max(int *length)
{
	return limit(length, PMI_KEYLEN_MAX);
}

int PMI_KVS_Get_value_length_max(int *length)
{
	return limit(length, PMI_VALLEN_MAX);
}

/*
 * A created space is a prefix of keys: its name is "<job>+<rank>.<n>", and a
 * key in it is kept as "+<rank>.<n>/<key>".
 */
static int create_space(struct job *job, char *kvsname, int length)
{
	const char *name;
	int n, rc = wire_job_name(job, &name);

	if (rc)
		return rc;
	n = snprintf(kvsname, length, "%s+%d.%u", name, job->rank,
		     atomic_fetch_add(&job->kvs_created, 1));
	return n < length ? 0 : -ENOBUFS;
}

int PMI_KVS_Create(char kvsname[], int length)
{
	return pmi1_code(SESSION_CALL(kvsname && length >= 1, s,
				      create_space(&s->job, kvsname, length)));
}

/*
 * The text behind this job's name in `kvsname`: "" or "+<rank>.<n>". 0, -ESRCH (it is
 * no space of this job) or an error.
 */
static int own_space(struct job *job, const char *kvsname, const char **space)
{
	const char *name;
	size_t len;
	int rc = wire_job_name(job, &name);

	if (rc)
		return rc;
	len = strlen(name);
	*space = kvsname + len;
	return strncmp(kvsname, name, len) || (**space && **space != '+') ?
		       -ESRCH : 0;
}

static int space_code(int rc)
{
	return rc == -ESRCH ? PMI_ERR_INVALID_KVS : pmi1_code(rc);
}

/* The key under which the job's space keeps it. As own_space, or -ENAMETOOLONG. */
static int full_key(struct job *job, const char *kvsname, const char *key,
		    char out[PMI_KEYLEN_MAX])
{
	const char *space;
	int n, rc = own_space(job, kvsname, &space);

	if (rc)
		return rc;
	n = snprintf(out, PMI_KEYLEN_MAX, "%s%s%s", space, *space ? "/" : "",
		     key);
	return n >= 0 && n < PMI_KEYLEN_MAX ? 0 : -ENAMETOOLONG;
}

static int check_created(struct job *job, const char *kvsname)
{
	const char *space;
	int rc = own_space(job, kvsname, &space);

	return rc || *space ? rc : -ESRCH;
}

int PMI_KVS_Destroy(const char kvsname[])
{
	return space_code(SESSION_CALL(kvsname, s,
				       check_created(&s->job, kvsname)));
}

static int put(struct job *job, const char *kvsname, const char *key,
	       const char *value)
{
	char name[PMI_KEYLEN_MAX];
	int rc = full_key(job, kvsname, key, name);

	return rc ? rc : kvs_put(job, name, value);
}

int PMI_KVS_Put(const char kvsname[], const char key[], const char value[])
{
	if (kvsname && key && value && !*key)
		return PMI_ERR_INVALID_KEY;
	return space_code(SESSION_CALL(kvsname && key && value, s,
				       put(&s->job, kvsname, key, value)));
}

int PMI_KVS_Commit(const char kvsname[])
{
	return pmi1_code(SESSION_CALL(kvsname, s, 0));
}

/*
 * PMI-1 clients ask for what PMI-2 calls an attribute of the job as for a key, MPICH
 * for PMI_process_mapping.
 */
static bool may_be_attribute(const char *key)
{
	return !strncmp(key, "PMI_", 4);
}

static int get_own(struct job *job, const char *name, struct value *out)
{
	int rc = kvs_get(job, NULL, -1, name, out);

	if (rc == -ENOENT && may_be_attribute(name))
		rc = job->ops->job_attr(job, name, out);
	return rc;
}

static int get_slowly(struct job *job, const char *kvsname, const char *key,
		      char *value, int length)
{
	struct value v = { NULL, 0 };
	char name[PMI_KEYLEN_MAX];
	int rc = full_key(job, kvsname, key, name);

	if (rc == -ESRCH) /* of a job that this one is connected with */
		rc = job->ops->get(job, kvsname, -1, key, &v);
	else if (!rc)
		rc = get_own(job, name, &v);
	if (!rc && !copy_text(value, length, v.data, v.len))
		rc = -ENOBUFS;
	value_free(&v);
	return rc;
}

int PMI_KVS_Get(const char kvsname[], const char key[], char value[],
		int length)
{
	const char *from;
	size_t len;

	if (!kvsname || !key || !value || length < 1)
		return PMI_ERR_INVALID_ARG;
	switch (api_find(kvsname, key, &from, &len)) {
	case 1:
		return copy_text(value, length, from, len)
			       ? PMI_SUCCESS : PMI_ERR_INVALID_LENGTH;
	case 0:
		if (!may_be_attribute(key))
			return PMI_ERR_INVALID_KEY;
	}
	return pmi1_code(SESSION_CALL(true, s,
				      get_slowly(&s->job, kvsname, key, value,
						 length)));
}

/* Neither PMI-2 nor the extension can list what is in a space. */
int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_len,
		       char val[], int val_len)
{
	bool valid = kvsname && key && key_len >= 1 && val && val_len >= 1;

	return pmi1_code(SESSION_CALL(valid, s, -ENOTSUP));
}

int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_len,
		      char val[], int val_len)
{
	return PMI_KVS_Iter_first(kvsname, key, key_len, val, val_len);
}

/* ---- starting processes ---- */

static struct spawn_pair read_keyval(const void *from, int i)
{
	const PMI_keyval_t *pairs = from;

	return (struct spawn_pair){ pairs[i].key, pairs[i].val };
}

int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[],
		       const int maxprocs[], const int info_keyval_sizesp[],
		       const PMI_keyval_t *info_keyval_vectors[],
		       int preput_keyval_size,
		       const PMI_keyval_t preput_keyval_vector[],
		       int errors[])
{
	const struct spawn_source from = {
		.count = count,
		.cmds = cmds,
		.counts_args = true,
		.argvs = argvs,
		.maxprocs = maxprocs,
		.info_sizes = info_keyval_sizesp,
		.infos = (const void *const *)info_keyval_vectors,
		.read_info = read_keyval,
		.npreput = preput_keyval_size,
		.preput = preput_keyval_vector,
		.read_preput = read_keyval,
	};

	return pmi1_code(api_spawn(&from, NULL, 0, errors));
}

/* ---- arguments of the process manager: there are none ---- */

int PMI_Parse_option(int num_args, char *args[], int *num_parsed,
		     PMI_keyval_t **keyvalp, int *size)
{
	if (num_args < 1)
		return PMI_ERR_INVALID_NUM_ARGS;
	if (!args)
		return PMI_ERR_INVALID_ARGS;
	if (!num_parsed)
		return PMI_ERR_INVALID_NUM_PARSED;
	if (!keyvalp)
		return PMI_ERR_INVALID_KEYVALP;
	if (!size)
		return PMI_ERR_INVALID_SIZE;
	*num_parsed = 0;
	*keyvalp = NULL;
	*size = 0;
	return PMI_SUCCESS;
}

int PMI_Args_to_keyval(int *argcp, char *((*argvp)[]), PMI_keyval_t **keyvalp,
		       int *size)
{
	if (!argcp || !argvp || !keyvalp || !size)
		return PMI_ERR_INVALID_ARG;
	*keyvalp = NULL;
	*size = 0;
	return PMI_SUCCESS;
}

/* Only arrays of size 0 are ever handed out. */
int PMI_Free_keyvals(PMI_keyval_t keyvalp[], int size)
{
	return size == 0 ? PMI_SUCCESS : PMI_ERR_INVALID_ARG;
}

int PMI_Get_options(char *str, int *length)
{
	if (!str || !length)
		return PMI_ERR_INVALID_ARG;
	if (*length < 1)
		return PMI_ERR_INVALID_LENGTH;
	*str = '\0';
	*length = 1;
	return PMI_SUCCESS;
}
