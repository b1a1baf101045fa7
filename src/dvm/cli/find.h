/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm: finding DVMs. An error with directories ends the program, as in client.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DVM_MEMBERS_MAX 1024 /* DVMs under one name: NAME.1, NAME.2, ... */

/* A connection with a head. */
struct dvm_socket {
	int fd;
	bool there;      /* on another node: by frames (remote.h) */
	uint32_t number; /* of several under one name; 0: it is one of its own */
};

/* NAME.3 becomes NAME, and 3 its number. False: it has none. */
bool dvm_split_name(char *name, uint32_t *number);
/*
 * Connect to the DVM of this name, or to those of its members that answer, in order;
 * *out is to be freed. 0, or a negative errno as of remote_connect: there is none.
 */
int dvm_connect(const char *name, struct dvm_socket **out, size_t *count);
/*
 * As above, for the DVM that is meant: `name`, that of PMI2X_DVM, this job's, or the
 * only one that is up on this machine, or, outside of jobs, on another. Its name, to be
 * freed, or NULL: no memory. With a / it is a file as of dvm_address.
 */
char *dvm_reach(const char *name, struct dvm_socket **out, size_t *count, int *error);
