/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-2: the 22 functions of Slurm's libpmi2, with its prototypes, types and
 * constants (<slurm/pmi2.h>), as libpmi2x implements them. A program may be
 * compiled with either header and run with either library.
 *
 * All functions return PMI2_SUCCESS or an error code. PMI2_ERR_INIT: before
 * init, after finalize, or in a child of fork. PMI2_ERR_INVALID_ARG: a null
 * pointer or an impossible argument. PMI2_FAIL: the server is gone or refused.
 * All may be called from any thread; none but PMI2_Finalize may still run
 * when PMI2_Finalize is called. Strings are NUL-terminated; lengths are bytes.
 */
#ifndef PMI2_H_INCLUDED
#define PMI2_H_INCLUDED

#define PMI2_MAX_KEYLEN 64      /* of a key, its NUL included */
#define PMI2_MAX_VALLEN 1024    /* of a value, its NUL included */
#define PMI2_MAX_ATTRVALUE 1024 /* of an attribute, its NUL included */
#define PMI2_ID_NULL -1         /* "no rank" for PMI2_KVS_Get */

#define PMI2_SUCCESS                0
#define PMI2_FAIL                   -1
#define PMI2_ERR_INIT               1  /* no session, or one already */
#define PMI2_ERR_NOMEM              2
#define PMI2_ERR_INVALID_ARG        3
#define PMI2_ERR_INVALID_KEY        4  /* there is no such key */
#define PMI2_ERR_INVALID_KEY_LENGTH 5
#define PMI2_ERR_INVALID_VAL        6  /* no list of numbers */
#define PMI2_ERR_INVALID_VAL_LENGTH 7
#define PMI2_ERR_INVALID_LENGTH     8  /* the caller's buffer is too short */
#define PMI2_ERR_INVALID_NUM_ARGS   9
#define PMI2_ERR_INVALID_ARGS       10
#define PMI2_ERR_INVALID_NUM_PARSED 11
#define PMI2_ERR_INVALID_KEYVALP    12
#define PMI2_ERR_INVALID_SIZE       13
#define PMI2_ERR_OTHER              14

#ifdef __cplusplus
extern "C" {
#endif

/* How two jobs that connect could talk; this library does not fill it in. */
typedef struct PMI2_Connect_comm {
	int (*read)(void *buf, int maxlen, void *ctx);
	int (*write)(const void *buf, int len, void *ctx);
	void *ctx;
	int isMaster;
} PMI2_Connect_comm_t;

/* An info key and value; only `key` and `value` are read. */
typedef struct MPID_Info {
	int handle;
	int pobj_mutex;
	int ref_count;
	struct MPID_Info *next;
	char *key;
	char *value;
} MPID_Info;

#define PMI2U_Info MPID_Info

/*
 * Start the session. Without PMI_FD in the environment the process is alone:
 * rank 0 of 1. `appnum` is the number of the command of the spawn that
 * started the process, or -1. A null pointer is left alone.
 * PMI2_ERR_INIT: there is a session already.
 */
int PMI2_Init(int *spawned, int *size, int *rank, int *appnum);

/*
 * End the session: requests nobody waited for are completed first, which may
 * block as waiting for them would. A new PMI2_Init may follow where the server
 * allows it.
 */
int PMI2_Finalize(void);

/* 1 between init and finalize, else 0. */
int PMI2_Initialized(void);

/*
 * Tell the server and exit with status 1. `flag` non-zero: the whole job ends.
 * `msg` may be NULL. Does not return.
 */
int PMI2_Abort(int flag, const char msg[]);

/*
 * Start processes: `count` commands, with argcs[i] strings argvs[i] (without the
 * program; argvs may be NULL), maxprocs[i] processes, and info_keyval_sizes[i]
 * infos in the array info_keyval_vectors[i] (both may be NULL). The preput
 * values are in the KVS of the new job from its start. jobId (may be NULL)
 * receives the name of the new job; errors (may be NULL) one code for each
 * process. Blocks until the processes are started.
 */
int PMI2_Job_Spawn(int count, const char *cmds[], int argcs[],
		   const char **argvs[], const int maxprocs[],
		   const int info_keyval_sizes[],
		   const struct MPID_Info *info_keyval_vectors[],
		   int preput_keyval_size,
		   const struct MPID_Info *preput_keyval_vector[],
		   char jobId[], int jobIdSize, int errors[]);

/* The name of this job. PMI2_ERR_INVALID_LENGTH when it does not fit. */
int PMI2_Job_GetId(char jobid[], int jobid_size);

int PMI2_Job_GetRank(int *rank);

/* The number of processes of the job, as Slurm's library returns it. */
int PMI2_Info_GetSize(int *size);

/* PMI2_FAIL where the server cannot connect jobs. `conn` is zeroed. */
int PMI2_Job_Connect(const char jobid[], PMI2_Connect_comm_t *conn);
int PMI2_Job_Disconnect(const char jobid[]);

#define HAVE_PMIX_RING 1
/* See pmi2x.h. */
int PMIX_Ring(const char value[], int *rank, int *ranks, char left[],
	      char right[], int maxvalue);

/* The value is visible to all processes after the next fence. */
int PMI2_KVS_Put(const char key[], const char value[]);

/* Collective: blocks until all processes of the job have entered it. */
int PMI2_KVS_Fence(void);

/*
 * The value of a key. `jobid` NULL or this job's: the KVS of this job.
 * `src_pmi_id` is a hint and may be PMI2_ID_NULL. `vallen` (may be NULL) is the
 * length without NUL; when the value does not fit into maxvalue bytes it is
 * cut and vallen is minus the length. value NULL with maxvalue 0 asks for the
 * length alone. With the extension this takes no lock and no system call.
 * PMI2_ERR_INVALID_KEY: there is no such key.
 */
int PMI2_KVS_Get(const char *jobid, int src_pmi_id, const char key[],
		 char value[], int maxvalue, int *vallen);

/*
 * Attributes that processes of one node share. `waitfor` non-zero: block until
 * some process of the node puts it. A value that does not fit is cut.
 */
int PMI2_Info_GetNodeAttr(const char name[], char value[], int valuelen,
			  int *found, int waitfor);
/* As above, for "1,2,3": at most arraylen numbers; outlen: how many. */
int PMI2_Info_GetNodeAttrIntArray(const char name[], int array[], int arraylen,
				  int *outlen, int *found);
int PMI2_Info_PutNodeAttr(const char name[], const char value[]);

/* Attributes of the job: universeSize, PMI_process_mapping and others. */
int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen,
			 int *found);
int PMI2_Info_GetJobAttrIntArray(const char name[], int array[], int arraylen,
				 int *outlen, int *found);

/* Names of ports; info_ptr is not used and may be NULL. */
int PMI2_Nameserv_publish(const char service_name[],
			  const struct MPID_Info *info_ptr, const char port[]);
int PMI2_Nameserv_lookup(const char service_name[],
			 const struct MPID_Info *info_ptr, char port[],
			 int portLen);
int PMI2_Nameserv_unpublish(const char service_name[],
			    const struct MPID_Info *info_ptr);

#ifdef __cplusplus
}
#endif

#endif
