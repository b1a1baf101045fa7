/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmi2x-allgather: allgather over a ring of the processes of a PMI job. PMI
 * carries the addresses of the neighbours only (PMIX_Ring); the blocks
 * themselves travel over the fabric (InfiniBand or RoCE verbs, else TCP), between
 * the nodes, and through memory that the processes of a node share.
 *
 * Follows "Enhancing Startup Performance of Parallel Applications with SLURM"
 * (Chakraborty et al.), part "PMI Ring Extension".
 *
 * Create, destroy, allgather and iallgather are collectives: all processes of
 * the job call them in the same order on the same ring. All functions return 0
 * or an error code of pmi2.h: PMI2_ERR_INVALID_ARG, PMI2_ERR_NOMEM,
 * PMI2_ERR_INIT (no PMI session), PMI2_ERR_INVALID_VAL_LENGTH (a block that is too
 * long, or that differs where all must be equal), PMI2_FAIL (the ring has
 * failed: pmi2x_ring_error says why). A ring that has failed stays so, at all
 * processes; destroy it.
 *
 * Any thread may use a ring; a thread that waits keeps the others out until it
 * is done. A child of fork must not use it. N is the size of the job; lengths
 * are bytes. Settings are environment variables, see pmi2x-allgather(7).
 */
#ifndef PMI2X_ALLGATHER_H
#define PMI2X_ALLGATHER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMI2X_RING_BLOCK_MAX (4 << 20) /* bytes of one block */
#define PMI2X_RING_ERROR_MAX 512       /* of an error text, its NUL included */

struct MPID_Info; /* of pmi2.h */

typedef struct pmi2x_ring pmi2x_ring;

/* An operation under way; completed once, by wait or test. */
typedef uint64_t pmi2x_ring_request;

/*
 * The PMI library of this process, for a program that has loaded it where the
 * dynamic linker does not find it. The first eight must be given; the rest may be
 * NULL: what they would speed up goes over put, fence and get, and without ifence
 * and test, or publish and lookup, a process that never joins is waited for as long
 * as PMI does, or is not named to all; without capabilities, who has made PMI fail is
 * not named over PMI. Prototypes as in pmi2.h and pmi2x.h
 * (PMIX_Request is uint64_t).
 */
typedef struct pmi2x_ring_pmi {
	int (*get_rank)(int *rank);                         /* PMI2_Job_GetRank */
	int (*get_size)(int *size);                         /* PMI2_Info_GetSize */
	int (*put)(const char key[], const char value[]);   /* PMI2_KVS_Put */
	int (*fence)(void);                                 /* PMI2_KVS_Fence */
	int (*get)(const char *jobid, int src, const char key[], char value[],
		   int maxvalue, int *vallen);              /* PMI2_KVS_Get */
	int (*get_job_attr)(const char name[], char value[], int valuelen,
			    int *found);                    /* PMI2_Info_GetJobAttr */
	int (*get_node_attr)(const char name[], char value[], int valuelen,
			     int *found, int waitfor);      /* PMI2_Info_GetNodeAttr */
	int (*put_node_attr)(const char name[],
			     const char value[]);           /* PMI2_Info_PutNodeAttr */
	int (*ring)(const char value[], int *rank, int *size, char left[],
		    char right[], int maxvalue);            /* PMIX_Ring */
	int (*ifence)(uint64_t *request);                   /* PMIX_KVS_Ifence */
	int (*iallgather)(const void *value, int len, void *buffer,
			  int maxlength, int lengths[],
			  uint64_t *request);               /* PMIX_Iallgather_n */
	int (*wait)(uint64_t request);                      /* PMIX_Wait */
	int (*test)(uint64_t request, int *flag);           /* PMIX_Test */
	int (*publish)(const char name[], const struct MPID_Info *info,
		       const char port[]);          /* PMI2_Nameserv_publish */
	int (*lookup)(const char name[], const struct MPID_Info *info,
		      char port[], int portlen);    /* PMI2_Nameserv_lookup */
	int (*capabilities)(const char name[], char value[],
			    int valuelen);          /* PMIX_Capabilities */
} pmi2x_ring_pmi;

/*
 * Collective, after PMI2_Init (or PMI_Init of libpmi2x). Find neighbours, agree
 * on a transport that all have, and connect. With `pmi` NULL the functions of
 * the PMI library are looked up in the process. On success *ring is the
 * caller's, to be destroyed. On failure `why` (whylen bytes, cut; may be NULL
 * with 0) says what was wrong.
 */
int pmi2x_ring_create(pmi2x_ring **ring, const pmi2x_ring_pmi *pmi, char *why,
		      size_t whylen);

/*
 * Free the ring and close all that it has open; PMI is not used. Operations
 * that are under way are given up, here and so at all others: complete them
 * first. NULL is allowed. Before PMI2_Finalize.
 */
int pmi2x_ring_destroy(pmi2x_ring *ring);

/*
 * Collective. All processes give a block of the same length (0 to
 * PMI2X_RING_BLOCK_MAX); the block of rank r is then at buffer + r * len.
 */
int pmi2x_ring_allgather(pmi2x_ring *ring, const void *block, size_t len,
			 void *buffer);

/*
 * Collective. Blocks of any length: that of rank r is at buffer + r * stride,
 * cut to stride bytes; the rest of its slot is left as it was. lengths (N numbers)
 * receives the uncut lengths. Each process may choose its own stride.
 */
int pmi2x_ring_allgather_v(pmi2x_ring *ring, const void *block, size_t len,
			   void *buffer, size_t stride, size_t lengths[]);

/*
 * As above, without waiting. Block, buffer and lengths must stay, and the block
 * unchanged, until the request is complete; results are valid only then. Operations are
 * carried out in the order in which they were started, while some process of each node
 * is inside a function of this library: there is no thread that works in the
 * background.
 */
int pmi2x_ring_iallgather(pmi2x_ring *ring, const void *block, size_t len,
			  void *buffer, pmi2x_ring_request *request);
int pmi2x_ring_iallgather_v(pmi2x_ring *ring, const void *block, size_t len,
			    void *buffer, size_t stride, size_t lengths[],
			    pmi2x_ring_request *request);

/*
 * Wait for a request; requests may be completed in any order. The request is
 * used up, with or without success; its error is returned.
 */
int pmi2x_ring_wait(pmi2x_ring *ring, pmi2x_ring_request request);
/*
 * Make progress without waiting. *flag is 0 while the request is under way. The request is
 * used up when *flag is 1 or an error is returned.
 */
int pmi2x_ring_test(pmi2x_ring *ring, pmi2x_ring_request request, int *flag);

/*
 * Why the latest call on this ring that failed has failed, naming the rank and the
 * node that are to blame; empty when none has. A call that succeeds leaves the text, and
 * so does one that fails for a null pointer; the text of a failed ring does not change.
 * The ring's memory, until it is destroyed; no other thread may be in a call meanwhile.
 */
const char *pmi2x_ring_error(const pmi2x_ring *ring);

/*
 * How blocks travel: "verbs", "tcp", "shm" (all on one node), "self" (one
 * process) or "pmi" (PMIX_Allgather). Static memory.
 */
const char *pmi2x_ring_transport(const pmi2x_ring *ring);

/* Counts of this process's work so far. */
typedef struct pmi2x_ring_counters {
	uint64_t operations;     /* completed */
	uint64_t steps;          /* blocks of other elements that have arrived
				    from the left: what the time follows */
	uint64_t messages_sent;  /* to both neighbours */
	uint64_t bytes_sent;     /* of blocks, without headers */
	uint64_t messages_received;
	uint64_t bytes_received;
	uint32_t elements;       /* of the ring: nodes, or ranks */
	uint32_t members;        /* ranks of this element */
} pmi2x_ring_counters;

/* A process that leads no node sends nothing: its counters stay 0. */
int pmi2x_ring_get_counters(pmi2x_ring *ring, pmi2x_ring_counters *out);

#ifdef __cplusplus
}
#endif

#endif
