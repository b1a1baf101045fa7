/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of pmi.h. */
#include "pmi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "clique.h"
#include "job.h"

#define PORT_MAX 1024 /* bytes of a port, NUL included, as the caller has it */

/* ---- the process group ---- */

int PMI_Init(int *spawned)
{
	struct session *s;
	int code, rc;

	if (!spawned)
		return PMI_ERR_INVALID_ARG;
	rc = session_start();
	if (rc)
		return pmi1_code(rc);
	s = pmi1_enter(&code);
	if (!s)
		return code;
	*spawned = s->spawned ? PMI_TRUE : PMI_FALSE;
	return pmi1_leave(s, 0);
}

int PMI_Initialized(PMI_BOOL *initialized)
{
	if (!initialized)
		return PMI_ERR_INVALID_ARG;
	*initialized = session_exists() ? PMI_TRUE : PMI_FALSE;
	return PMI_SUCCESS;
}

int PMI_Finalize(void)
{
	return pmi1_code(session_finish());
}

/* Functions that hand out one number from the session. */
typedef int number_reader(struct session *s, int *out);

static int get_number(number_reader *reader, int *out)
{
	struct session *s;
	int code;

	if (!out)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	return s ? pmi1_leave(s, reader(s, out)) : code;
}

static int read_size(struct session *s, int *out)
{
	*out = s->size;
	return 0;
}

static int read_rank(struct session *s, int *out)
{
	*out = s->rank;
	return 0;
}

static int read_appnum(struct session *s, int *out)
{
	*out = s->appnum;
	return 0;
}

static int read_universe(struct session *s, int *out)
{
	struct value v = { NULL, 0 };
	int rc = s->ops->job_attr(s, "universeSize", &v);

	if (!rc && parse_ints(v.data, out, 1) != 1)
		rc = -EPROTO;
	if (rc == -ENOENT)
		rc = read_size(s, out);
	value_free(&v);
	return rc;
}

/* The ranks of this node; just this one when the server does not tell. */
static int read_clique(struct session *s, int ranks[], int max, int *size)
{
	struct value v = { NULL, 0 };
	int rc = s->ops->job_attr(s, "PMI_process_mapping", &v);

	if (!rc) {
		*size = clique_find(v.data, s->rank, s->size, ranks, max);
		rc = *size < 0 ? *size : 0;
	} else if (rc == -ENOENT) {
		if (max > 0)
			ranks[0] = s->rank;
		*size = 1;
		rc = 0;
	}
	value_free(&v);
	return rc;
}

static int read_clique_size(struct session *s, int *out)
{
	return read_clique(s, NULL, 0, out);
}

int PMI_Get_size(int *size)
{
	return get_number(read_size, size);
}

int PMI_Get_rank(int *rank)
{
	return get_number(read_rank, rank);
}

int PMI_Get_universe_size(int *size)
{
	return get_number(read_universe, size);
}

int PMI_Get_appnum(int *appnum)
{
	return get_number(read_appnum, appnum);
}

int PMI_Get_clique_size(int *size)
{
	return get_number(read_clique_size, size);
}

int PMI_Get_clique_ranks(int ranks[], int length)
{
	struct session *s;
	int code, rc, n;

	if (!ranks || length < 1)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	if (!s)
		return code;
	rc = read_clique(s, ranks, length, &n);
	if (!rc && n > length)
		rc = -ENOBUFS;
	return pmi1_leave(s, rc);
}

int PMI_Barrier(void)
{
	int code;
	struct session *s = pmi1_enter(&code);

	return s ? pmi1_leave(s, kvs_fence(s)) : code;
}

int PMI_Abort(int exit_code, const char error_msg[])
{
	abort_job(true, exit_code, error_msg);
}

int PMI_Get_id(char id_str[], int length)
{
	struct session *s;
	int code;

	if (!id_str)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	return s ? pmi1_leave(s, copy_jobid(s, id_str, length)) : code;
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
	struct session *s;
	int code;

	if (!service_name || !port)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	return s ? pmi1_leave(s, s->ops->publish(s, service_name, port))
		 : code;
}

int PMI_Unpublish_name(const char service_name[])
{
	struct session *s;
	int code;

	if (!service_name)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	return s ? pmi1_leave(s, s->ops->unpublish(s, service_name)) : code;
}

int PMI_Lookup_name(const char service_name[], char port[])
{
	struct value v = { NULL, 0 };
	struct session *s;
	int code, rc;

	if (!service_name || !port)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	if (!s)
		return code;
	rc = s->ops->lookup(s, service_name, &v);
	if (!rc && !copy_text(port, PORT_MAX, v.data, v.len))
		rc = -ENOBUFS;
	value_free(&v);
	return pmi1_leave(s, rc == -ENOENT ? -EREMOTEIO : rc);
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
int PMI_KVS_Create(char kvsname[], int length)
{
	const char *jobid;
	struct session *s;
	int code, rc, n;

	if (!kvsname || length < 1)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	if (!s)
		return code;
	rc = session_jobid(s, &jobid);
	if (!rc) {
		n = snprintf(kvsname, length, "%s+%d.%u", jobid, s->rank,
			     atomic_fetch_add(&s->kvs_created, 1));
		rc = n < length ? 0 : -ENOBUFS;
	}
	return pmi1_leave(s, rc);
}

/* What follows this job's name in `kvsname`: "" or "+<rank>.<n>"; NULL. */
static const char *own_space(const char *jobid, const char *kvsname)
{
	size_t len = strlen(jobid);

	if (strncmp(kvsname, jobid, len))
		return NULL;
	kvsname += len;
	return *kvsname == '\0' || *kvsname == '+' ? kvsname : NULL;
}

/* The key under which the job's space keeps it. 0 or -ENAMETOOLONG. */
static int full_key(char *out, size_t size, const char *space,
		    const char *key)
{
	int n = snprintf(out, size, "%s%s%s", space, *space ? "/" : "", key);

	return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

int PMI_KVS_Destroy(const char kvsname[])
{
	const char *jobid, *space = NULL;
	struct session *s;
	int code, rc;

	if (!kvsname)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	if (!s)
		return code;
	rc = session_jobid(s, &jobid);
	if (!rc)
		space = own_space(jobid, kvsname);
	session_leave(s);
	if (!rc && (!space || !*space))
		return PMI_ERR_INVALID_KVS;
	return pmi1_code(rc);
}

int PMI_KVS_Put(const char kvsname[], const char key[], const char value[])
{
	const char *jobid, *space = NULL;
	char name[PMI_KEYLEN_MAX];
	struct session *s;
	int code, rc;

	if (!kvsname || !key || !value)
		return PMI_ERR_INVALID_ARG;
	if (!*key)
		return PMI_ERR_INVALID_KEY;
	s = pmi1_enter(&code);
	if (!s)
		return code;
	rc = session_jobid(s, &jobid);
	if (!rc)
		space = own_space(jobid, kvsname);
	if (space)
		rc = full_key(name, sizeof(name), space, key);
	if (space && !rc)
		rc = kvs_put(s, name, value);
	session_leave(s);
	return rc || space ? pmi1_code(rc) : PMI_ERR_INVALID_KVS;
}

int PMI_KVS_Commit(const char kvsname[])
{
	struct session *s;
	int code;

	if (!kvsname)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	return s ? pmi1_leave(s, 0) : code;
}

static int get_slowly(struct session *s, const char *kvsname, const char *key,
		      struct value *out)
{
	const char *jobid, *space;
	char name[PMI_KEYLEN_MAX];
	int rc = session_jobid(s, &jobid);

	if (rc)
		return rc;
	space = own_space(jobid, kvsname);
	if (!space) /* of a job that this one is connected with */
		return s->ops->get(s, kvsname, -1, key, out);
	rc = full_key(name, sizeof(name), space, key);
	return rc ? rc : kvs_get(s, NULL, -1, name, out);
}

/* The way without a lock: 1 found, 0 no such key, -ENXIO take the other way. */
static int find(const char *kvsname, const char *key, const char **value,
		size_t *len)
{
	struct session *s = session_peek();
	const char *own;

	if (!s)
		return -ENXIO;
	own = atomic_load_explicit(&s->jobid, memory_order_acquire);
	if (!own || strcmp(kvsname, own))
		return -ENXIO;
	return kvs_find(s, key, value, len);
}

int PMI_KVS_Get(const char kvsname[], const char key[], char value[],
		int length)
{
	struct value v = { NULL, 0 };
	struct session *s;
	const char *from;
	size_t len;
	int code, rc;

	if (!kvsname || !key || !value || length < 1)
		return PMI_ERR_INVALID_ARG;
	rc = find(kvsname, key, &from, &len);
	if (rc >= 0 && !rc)
		return PMI_ERR_INVALID_KEY;
	if (rc > 0)
		return copy_text(value, length, from, len)
			       ? PMI_SUCCESS : PMI_ERR_INVALID_LENGTH;
	s = pmi1_enter(&code);
	if (!s)
		return code;
	rc = get_slowly(s, kvsname, key, &v);
	if (!rc && !copy_text(value, length, v.data, v.len))
		rc = -ENOBUFS;
	value_free(&v);
	return pmi1_leave(s, rc);
}

/* Neither PMI-2 nor the extension can list what is in a space. */
int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_len,
		       char val[], int val_len)
{
	struct session *s;
	int code;

	if (!kvsname || !key || key_len < 1 || !val || val_len < 1)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	return s ? pmi1_leave(s, -ENOTSUP) : code;
}

int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_len,
		      char val[], int val_len)
{
	return PMI_KVS_Iter_first(kvsname, key, key_len, val, val_len);
}

/* ---- starting processes ---- */

static int draft_pairs(struct spawn_request *r, struct spawn_command *c,
		       int n, int max, const PMI_keyval_t *from)
{
	struct spawn_pair *pairs;

	if (n < 0 || n > max || (n && !from))
		return -EINVAL;
	if (n == 0)
		return 0;
	pairs = spawn_draft_pairs(r, c, n);
	if (!pairs)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		pairs[i].key = from[i].key;
		pairs[i].value = from[i].val;
	}
	return 0;
}

static int draft_command(struct spawn_command *c, const char *program,
			 const char **argv, int maxprocs)
{
	if (maxprocs < 1)
		return -EINVAL;
	c->program = (char *)program;
	c->argv = (char **)argv;
	while (argv && argv[c->argc] && c->argc < SPAWN_ARGS_MAX)
		c->argc++;
	c->nprocs = maxprocs;
	return 0;
}

int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[],
		       const int maxprocs[], const int info_keyval_sizesp[],
		       const PMI_keyval_t *info_keyval_vectors[],
		       int preput_keyval_size,
		       const PMI_keyval_t preput_keyval_vector[],
		       int errors[])
{
	struct spawn_request *r;
	struct session *s;
	int code, rc;

	if (count < 1 || count > SPAWN_COMMANDS_MAX || !cmds || !maxprocs)
		return PMI_ERR_INVALID_ARG;
	s = pmi1_enter(&code);
	if (!s)
		return code;
	r = spawn_draft(count);
	rc = r ? draft_pairs(r, NULL, preput_keyval_size, SPAWN_PREPUT_MAX,
			     preput_keyval_vector) : -ENOMEM;
	for (int i = 0; !rc && i < count; i++) {
		rc = draft_command(&r->commands[i], cmds[i],
				   argvs ? argvs[i] : NULL, maxprocs[i]);
		if (!rc && info_keyval_sizesp && info_keyval_vectors)
			rc = draft_pairs(r, &r->commands[i],
					 info_keyval_sizesp[i], SPAWN_INFO_MAX,
					 info_keyval_vectors[i]);
	}
	if (!rc)
		rc = spawn_run(s, r, NULL, 0, errors);
	spawn_draft_free(r);
	return pmi1_leave(s, rc);
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
