/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm up: what its options say, and the heads that it starts. An error ends the
 * program, as in client.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dvm/cli/client.h"

#define HEAD_ARGS_MAX 64

struct up {
	const char *name;
	uint32_t nodes;
	uint32_t dvms;       /* under this name; 0: one that has the name itself */
	uint32_t dvm_nodes;  /* nodes of each DVM; 0: computed */
	json_t *names;       /* of --nodelist, or NULL: any nodes */
	bool local, launcher; /* in place of srun */
	const char *journal; /* its directory, or NULL */
	const char *orphan;  /* --orphan, or NULL */
	bool take_over;      /* --take-over */
	bool ends;           /* with its last client: of batch */
	char *args[HEAD_ARGS_MAX]; /* of the head */
	int nargs;
	char own[DVM_PATH_MAX];    /* where the programs are */
};

/* ---- up_options.c ---- */

/* Read the options of up or batch; args gets those of the head. */
void up_take_options(struct up *u, int argc, char **argv);
/* Add an option of the head, and its value unless that is NULL. Keeps both. */
void up_add(struct up *u, const char *option, const char *value);

/* ---- cmd_up.c ---- */

/* The directory of the DVM's other programs. */
void up_find_own(char out[DVM_PATH_MAX]);

/* ---- start_heads.c ---- */

/*
 * Start all heads at once, each with its part of the nodes, and wait until they are ready.
 * When one fails, all end, and the program, too. False: another DVM has the name, and
 * u->ends is set.
 */
bool start_heads(struct up *u);
