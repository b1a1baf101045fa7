/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI client under measurement, loaded at run time so that one program
 * measures libpmi2x, its drop-in libpmi2.so.0 and Slurm's own alike.
 */
#pragma once

#include <stdbool.h>

#include "pmi2.h"
#include "pmi2x.h"

/* Functions of pmi2x.h are NULL where the library does not have them. */
struct bench_pmi {
	int (*init)(int *spawned, int *size, int *rank, int *appnum);
	int (*finalize)(void);
	int (*abort)(int flag, const char msg[]);
	int (*put)(const char key[], const char value[]);
	int (*fence)(void);
	int (*get)(const char *jobid, int src, const char key[], char value[],
		   int maxvalue, int *vallen);
	int (*ring)(const char value[], int *rank, int *size, char left[],
		    char right[], int maxvalue);
	int (*fetch)(int rank, const char *key, void *value, size_t *len,
		     int timeout_ms);
	int (*ifence)(PMIX_Request *request);
	int (*allgather)(const void *value, int len, void *buffer,
			 int maxlength, int lengths[]);
	int (*iallgather)(const void *value, int len, void *buffer,
			  int maxlength, int lengths[], PMIX_Request *request);
	int (*iallgather_view)(const void *value, int len, PMIX_View **view,
			       PMIX_Request *request);
	const void *(*view_value)(const PMIX_View *view, int rank, int *len);
	int (*view_free)(PMIX_View *view);
	int (*wait)(PMIX_Request request);
	int (*barrier)(void); /* without data; PMI-2 has none */
	int (*group)(const char *ranks); /* a barrier of these: 0,4,8 */
	int (*capability)(const char name[], char value[], int valuelen);
	const char *(*version)(void);
	bool early; /* its server may be there before the ranks */
};

/*
 * Load `library`, a path or a name that the dynamic linker finds, for the life
 * of the process. Returns false and says why when it is no PMI-2 client.
 */
bool bench_pmi_load(struct bench_pmi *pmi, const char *library);

/* In place of a library: PMI-1 as MPICH speaks it. */
void bench_pmi1(struct bench_pmi *pmi);
