/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1 in full, with the prototypes, types and constants of <slurm/pmi.h>, as
 * libpmi2x implements it. Unlike Slurm's own libpmi it needs no libslurm and
 * speaks on PMI_FD; it prefers the PMI-2 wire with the pmi2x extension and
 * falls back to PMI-1 with a server that knows nothing else.
 *
 * All functions return PMI_SUCCESS or an error code. PMI_ERR_INIT: before
 * init, after finalize, or in a child of fork. PMI_ERR_INVALID_ARG: a null
 * pointer or an impossible argument. PMI_FAIL: the server is gone or refused.
 * All may be called from any thread; none but PMI_Finalize may still run when
 * PMI_Finalize is called. Strings are NUL-terminated; lengths are bytes.
 */
#ifndef PMI_H
#define PMI_H

#define PMI_SUCCESS                  0
#define PMI_FAIL                    -1
#define PMI_ERR_INIT                 1
#define PMI_ERR_NOMEM                2
#define PMI_ERR_INVALID_ARG          3
#define PMI_ERR_INVALID_KEY          4
#define PMI_ERR_INVALID_KEY_LENGTH   5
#define PMI_ERR_INVALID_VAL          6
#define PMI_ERR_INVALID_VAL_LENGTH   7
#define PMI_ERR_INVALID_LENGTH       8
#define PMI_ERR_INVALID_NUM_ARGS     9
#define PMI_ERR_INVALID_ARGS        10
#define PMI_ERR_INVALID_NUM_PARSED  11
#define PMI_ERR_INVALID_KEYVALP     12
#define PMI_ERR_INVALID_SIZE        13
#define PMI_ERR_INVALID_KVS         14

typedef int PMI_BOOL;
#define PMI_TRUE     1
#define PMI_FALSE    0

/* Groups that PMI_Barrier_group takes in place of a list of ranks. */
#define PMI_GROUP_WORLD ((int *)0) /* all ranks of the job */
#define PMI_GROUP_SELF  ((int *)1) /* this one */
#define PMI_GROUP_NODE  ((int *)2) /* the ranks of this node */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the process group ---- */

/* Start the session; see PMI2_Init. PMI_ERR_INIT: there is one already. */
int PMI_Init(int *spawned);
/* Never fails but for a null pointer. */
int PMI_Initialized(PMI_BOOL *initialized);
/* End the session; see PMI2_Finalize. */
int PMI_Finalize(void);
int PMI_Get_size(int *size);
int PMI_Get_rank(int *rank);
/* How many processes there could be; the size when the server does not tell. */
int PMI_Get_universe_size(int *size);
/* The number of the command of the spawn that started this process, or -1. */
int PMI_Get_appnum(int *appnum);
/* `port` has room for 1,024 bytes. PMI_FAIL: nobody has published the name. */
int PMI_Publish_name(const char service_name[], const char port[]);
int PMI_Unpublish_name(const char service_name[]);
int PMI_Lookup_name(const char service_name[], char port[]);
/* The name of the group. PMI_ERR_INVALID_LENGTH: it does not fit. */
int PMI_Get_id(char id_str[], int length);
int PMI_Get_kvs_domain_id(char id_str[], int length);
int PMI_Get_id_length_max(int *length);
/* Collective; publishes what was put, see PMI2_KVS_Fence. */
int PMI_Barrier(void);
/*
 * A barrier of some ranks, of PMI-1 1.2: `group` is a list of `count` of them,
 * different ones and this one among them, or one of PMI_GROUP_*, with which `count`
 * does not matter. After it all members can get the values that each has put before; the
 * next PMI_Barrier publishes them to all others. Members that wait for one another give
 * the same list and the same tag, which may be NULL; threads that are in barriers of this
 * kind at the same time need different tags. PMI_FAIL: the server has no groups;
 * PMI_GROUP_SELF, which waits for nobody, finds that out.
 */
int PMI_Barrier_group(const int *group, int count, const char *stringtag);
/*
 * The processes on this node, from PMI_process_mapping; just this one when the
 * server does not tell. PMI_ERR_INVALID_LENGTH: `ranks` is too short.
 */
int PMI_Get_clique_size(int *size);
int PMI_Get_clique_ranks(int ranks[], int length);
/* End the job and exit with exit_code. Does not return. */
int PMI_Abort(int exit_code, const char error_msg[]);

/* ---- the key-value space ---- */

int PMI_KVS_Get_my_name(char kvsname[], int length);
int PMI_KVS_Get_name_length_max(int *length);
int PMI_KVS_Get_key_length_max(int *length);
int PMI_KVS_Get_value_length_max(int *length);
/*
 * A further key-value space: keys put under its name are apart from others and
 * published by the same barrier. It needs no server; destroying it forgets
 * nothing. With it keys are shorter by the length of the name.
 */
int PMI_KVS_Create(char kvsname[], int length);
int PMI_KVS_Destroy(const char kvsname[]);
/* PMI_ERR_INVALID_KVS: not the name of this job's space or one made by it. */
int PMI_KVS_Put(const char kvsname[], const char key[], const char value[]);
/* No effect: the barrier commits. */
int PMI_KVS_Commit(const char kvsname[]);
/*
 * PMI_ERR_INVALID_KEY: there is no such key. PMI_ERR_INVALID_LENGTH: the value
 * does not fit. With the extension this takes no lock and no system call. A key
 * that nobody has put and that begins with PMI_ is looked for among the attributes
 * of the job (PMI2_Info_GetJobAttr), as PMI_process_mapping.
 */
int PMI_KVS_Get(const char kvsname[], const char key[], char value[],
		int length);
/* PMI_FAIL: neither PMI-2 nor the extension can list keys. */
int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_len,
		       char val[], int val_len);
int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_len,
		      char val[], int val_len);

/* ---- starting processes ---- */

typedef struct PMI_keyval_t {
	char *key;
	char *val;
} PMI_keyval_t;

/*
 * As PMI2_Job_Spawn; argvs[i] ends with NULL. `errors` (may be NULL) receives
 * one code for each process.
 */
int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[],
		       const int maxprocs[], const int info_keyval_sizesp[],
		       const PMI_keyval_t *info_keyval_vectors[],
		       int preput_keyval_size,
		       const PMI_keyval_t preput_keyval_vector[],
		       int errors[]);

/*
 * Command line arguments of the process manager: there are none, so these find
 * none, leave the arguments alone and succeed.
 */
int PMI_Parse_option(int num_args, char *args[], int *num_parsed,
		     PMI_keyval_t **keyvalp, int *size);
int PMI_Args_to_keyval(int *argcp, char *((*argvp)[]), PMI_keyval_t **keyvalp,
		       int *size);
int PMI_Free_keyvals(PMI_keyval_t keyvalp[], int size);
int PMI_Get_options(char *str, int *length);

#ifdef __cplusplus
}
#endif

#endif
