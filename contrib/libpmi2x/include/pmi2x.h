/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Additions of libpmi2x to PMI-1 (pmi.h) and PMI-2 (pmi2.h). They work in a session that
 * PMI2_Init or PMI_Init has started; PMIX_Sync_* at the end of this file need none.
 *
 * PMIX_Ring, PMIX_Allgather, PMIX_Iallgather, PMIX_KVS_Ifence and PMIX_Wait
 * follow "Enhancing Startup Performance of Parallel Applications with SLURM"
 * (Chakraborty et al.); the names of MVAPICH2 2.3 follow its start-up code.
 *
 * With mpi/pmi2x these are collectives of their own; with any other PMI server
 * they are put, fence and get, with the same results; a process without a
 * server is a job of one. All processes of a job must use the library in the
 * same way: PMI2X_DISABLE is set for all or for none.
 *
 * All return 0 or an error code of pmi2.h: PMI2_ERR_INIT (no session: before init, after
 * finalize, or in a child of fork), PMI2_ERR_INVALID_ARG (null pointer, impossible
 * argument, empty key of a put, no such request),
 * PMI2_ERR_INVALID_VAL_LENGTH, PMI2_ERR_INVALID_KEY_LENGTH, PMI2_ERR_NOMEM,
 * PMI2_FAIL (the server refused or is gone). Any thread may call any of them;
 * collectives must be called in the same order by all processes. N is the size
 * of the job; lengths are bytes.
 */
#ifndef PMI2X_H
#define PMI2X_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMI2X_MAXLENGTH 1024    /* MaxLength of PMIX_Allgather, NUL included */
#define PMI2X_MAX_VALLEN 262144 /* of a value with an explicit length */
#define PMI2X_MAX_KEYLEN 56     /* of its key, NUL included */

/* A non-blocking operation under way; completed once, by wait or test. */
typedef uint64_t PMIX_Request;
#define PMIX_REQUEST_NULL ((PMIX_Request)0)

/* ---- ring ---- */

/*
 * Collective. Each process gives a value (under 1,024 bytes) and gets the
 * values of its neighbours in a ring, cut to maxvalue bytes NUL included, its
 * rank in the ring and the ring's size. The ring's ranks may differ from
 * those of PMI. `left` and `right` are the caller's, maxvalue bytes each.
 */
int PMIX_Ring(const char value[], int *rank, int *size, char left[],
	      char right[], int maxvalue);

/* ---- allgather ---- */

/*
 * Collective. `buffer` has N * PMI2X_MAXLENGTH bytes: the value of rank r is at
 * buffer + r * PMI2X_MAXLENGTH, NUL-terminated, the rest of its slot zero.
 * PMI2_ERR_INVALID_VAL_LENGTH: value is PMI2X_MAXLENGTH bytes or longer.
 */
int PMIX_Allgather(const char value[], void *buffer);

/*
 * As above, without waiting: the value is copied before the call returns, and buffer
 * must stay until the request is complete; it is valid only then.
 */
int PMIX_Iallgather(const char value[], void *buffer, PMIX_Request *request);

/*
 * As above, for `len` bytes of any kind (0 to PMI2X_MAX_VALLEN; the processes may
 * differ in it) and slots of maxlength bytes. Longer values are cut, and the rest of a
 * slot behind a shorter one is zero; lengths (N numbers, or NULL) receives the uncut
 * lengths. PMI2_ERR_INVALID_VAL_LENGTH: `len` is negative, or above the limit.
 */
int PMIX_Allgather_n(const void *value, int len, void *buffer, int maxlength,
		     int lengths[]);
int PMIX_Iallgather_n(const void *value, int len, void *buffer, int maxlength,
		      int lengths[], PMIX_Request *request);

/*
 * Without a copy: when the request is complete, *view shows the gathered values
 * in place, in memory that the processes of the node share and may only read. Without
 * such memory ("region" of PMIX_Capabilities is "0") the view has a private copy.
 */
typedef struct pmix_view PMIX_View;
int PMIX_Iallgather_view(const void *value, int len, PMIX_View **view,
			 PMIX_Request *request);
/*
 * The value of a rank and its length (`len` may be NULL), until PMIX_View_free
 * or finalize. NULL: no such rank, or the session has ended.
 */
const void *PMIX_View_value(const PMIX_View *view, int rank, int *len);
/* Give the memory back. NULL is allowed. May be called after finalize. */
int PMIX_View_free(PMIX_View *view);

/* ---- fence ---- */

/*
 * Collective. Enter a fence and return. Until the request is complete the caller
 * must not use PMI2_KVS_* or PMI_KVS_*; what it had put is published then.
 */
int PMIX_KVS_Ifence(PMIX_Request *request);

/* ---- fetch ---- */

/*
 * Not collective: the value that `rank` has put last under a key, by any of the put
 * functions, whether or not a fence has published it. It is the value at the time of
 * the answer, not one that was kept: a later fetch brings a later value. A value can be
 * fetched as soon as the put function has returned.
 *
 * Waits on the owner's node until the key is there, for `timeout_ms` milliseconds: 0:
 * not at all; -1: without limit. *len is the room at `value` and becomes the length of
 * the value; no NUL is added. Own rank and own node as well.
 *
 * PMI2_ERR_INVALID_KEY: the owner has not put the key in time.
 * PMI2_ERR_INVALID_LENGTH: there is not enough room, *len is what is needed.
 * PMI2_ERR_INVALID_ARG: there is no such rank, the key is empty, timeout_ms is below
 * -1, or a pointer is null.
 * PMI2_ERR_OTHER: the owner has been killed, or has finalized without putting it, or
 * its node cannot be reached, or too much is under way: "refusal" of PMIX_Capabilities
 * says it by name.
 * PMI2_FAIL: the server cannot do that ("fetch" of PMIX_Capabilities is "0"). A fence
 * takes all processes, so nothing is done instead.
 */
int PMIX_KVS_Fetch(int rank, const char *key, void *value, size_t *len,
		   int timeout_ms);
/*
 * As above, without waiting: `value` and `len` must stay until the request is complete,
 * and are set then. Finalizing gives up what is under way.
 */
int PMIX_KVS_Ifetch(int rank, const char *key, void *value, size_t *len,
		    int timeout_ms, PMIX_Request *request);

/* ---- completion ---- */

/*
 * Wait for a request; requests may be completed in any order. The request is
 * used up, with or without success; its error is returned.
 */
int PMIX_Wait(PMIX_Request request);
/*
 * As above, without waiting: *flag is 0 while it is under way; the request is used up
 * when *flag is 1, with or without success. No such request: *flag is left as it was.
 */
int PMIX_Test(PMIX_Request request, int *flag);

/* ---- binary values ---- */

/* PMI2_KVS_Put for `len` bytes of any kind, up to PMI2X_MAX_VALLEN. */
int PMIX_KVS_Put_n(const char key[], const void *value, int len);
/*
 * The value of a key put by any of the put functions. At most maxlength bytes
 * are copied; *len (may be NULL) is the uncut length. No NUL is added.
 * PMI2_ERR_INVALID_KEY: there is no such key.
 */
int PMIX_KVS_Get_n(const char key[], void *value, int maxlength, int *len);

/* ---- what there is ---- */

/* The version of this library; static memory. Needs no session. */
const char *PMIX_Version(void);

/*
 * The properties of the session, as text, cut to valuelen bytes NUL included:
 *   wire           "pmi-2", "pmi-1" or "none" (singleton)
 *   extension      version agreed on, "0": none
 *   region         layout version of the mapped results region, "0": not mapped
 *   region-size    its size in bytes
 *   slots          layout version of the slots through which collectives are
 *                  entered, "0": they are entered over the socket
 *   fetch          "1": PMIX_KVS_Fetch can be used, "0": it is refused
 *   nodes          nodes of the step, "0": unknown
 *   server-build   version text of the server, empty: unknown
 *   refusal        the server's words about the last request that it refused: who
 *                  has made a collective fail; empty: none, or it is gone
 * PMI2_ERR_INVALID_KEY: no such name.
 */
int PMIX_Capabilities(const char name[], char value[], int valuelen);

/* ---- the names that MVAPICH2 looks for ---- */

/*
 * At most one operation of each kind may be under way; starting a second one is
 * PMI2_ERR_INVALID_ARG. Waiting for a fence or barrier that is not under way succeeds at
 * once; waiting for such a gather is PMI2_ERR_INVALID_ARG. Two threads may wait for the
 * same operation.
 */
int PMI_Ibarrier(void);
int PMI_Wait(void);
int PMI2_KVS_Ifence(void);
int PMI2_KVS_Wait(void);
/* Values under 1,024 bytes, slots of 1,024 bytes in rank order, zero-filled. */
int PMI2_Iallgather(const char value[]);
int PMI2_Iallgather_wait(void *buf); /* the caller's N * 1,024 bytes */
int PMI2_SHMEM_Iallgather(const char value[]);
/* *buf: the library's, read-only, until the next of its kind or finalize. */
int PMI2_SHMEM_Iallgather_wait(void **buf);

/* ---- keys and meetings of the step, without a session ---- */

/*
 * A connection with the store of the step, as pmi2x-sync(1) and its Python module have it.
 * It needs no session: it works before init, beside MPI, after finalize, and in several
 * processes of a rank. One thread at a time may use a connection, and a child of fork
 * needs one of its own: PMI2_ERR_INIT.
 *
 * All return 0 or an error code; PMIX_Sync_error has a line about the last one.
 * PMI2_ERR_INIT: this process is in no step of pmi2x, or the connection has been lost.
 * PMI2_ERR_INVALID_ARG: a null pointer, or a key or value that is too long.
 * PMI2X_ERR_TIMEOUT: the line names the missing ranks or keys.
 * PMI2_ERR_OTHER: a rank that has ended can never come, or a limit is reached: the line says it.
 * PMI2_FAIL: the agent of the node has gone. PMI2_ERR_NOMEM.
 */
typedef struct pmix_sync PMIX_Sync;

#define PMI2X_ERR_TIMEOUT 124 /* the exit status of pmi2x-sync */
#define PMI2X_SYNC_NODE 1     /* flag: among the tasks of this node, not of the step */
#define PMI2X_SYNC_WAIT 2     /* flag of PMIX_Sync_get */

/* Bytes that were read, with a NUL behind them. */
typedef struct {
	const void *data;
	size_t len;
} PMIX_Sync_value;

/*
 * *sync is to be closed also after an error, so that PMIX_Sync_error can say what it was. NULL:
 * PMI2_ERR_NOMEM.
 */
int PMIX_Sync_open(PMIX_Sync **sync);
int PMIX_Sync_close(PMIX_Sync *sync); /* NULL is allowed */
/* Static until the next call with `sync`; empty: no error. */
const char *PMIX_Sync_error(const PMIX_Sync *sync);
/* The rank of this process in the step, and the step's size. */
int PMIX_Sync_rank(PMIX_Sync *sync, int *rank, int *size);
/*
 * How long each later call may wait, in milliseconds; -1, as at first: without limit. A call
 * that is late is withdrawn: its rank is not in the barrier any more.
 */
int PMIX_Sync_timeout(PMIX_Sync *sync, int64_t timeout_ms);

/* Wait until all tasks are in the barrier. `name` may be NULL: "default". */
int PMIX_Sync_barrier(PMIX_Sync *sync, const char *name, int flags);
/*
 * The values of all tasks, in the order of their ranks. *values is one block of memory, for
 * free(). The values have at most 256 MiB together.
 */
int PMIX_Sync_allgather(PMIX_Sync *sync, const char *name, const void *value, size_t len,
			int flags, PMIX_Sync_value **values, int *n);
/* *elected is 1 in one task, that which has asked first, and 0 in the others. */
int PMIX_Sync_elect(PMIX_Sync *sync, const char *name, int flags, int *elected);

/* Set a key of up to 8 KiB to a value of up to 8 MiB. */
int PMIX_Sync_put(PMIX_Sync *sync, const char *key, const void *value, size_t len, int flags);
/*
 * The value of a key, one block of memory for free(). PMI2_ERR_INVALID_KEY: it does not
 * exist. With PMI2X_SYNC_WAIT the call waits until the key exists.
 */
int PMIX_Sync_get(PMIX_Sync *sync, const char *key, int flags, PMIX_Sync_value **value);
/* Wait until all of `n` keys exist. */
int PMIX_Sync_wait(PMIX_Sync *sync, const char *const keys[], int n, int flags);
/* Add to a key, which is 0 before it exists; *sum is its new value. */
int PMIX_Sync_add(PMIX_Sync *sync, const char *key, int64_t number, int flags, int64_t *sum);

#ifdef __cplusplus
}
#endif

#endif
