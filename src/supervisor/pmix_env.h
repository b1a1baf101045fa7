/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables by which PMIx clients find pmi2x-pmixd. Makes no memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Values from which the variables are made: see helpers/pmixd/pmixd.h. */
struct pmix_env {
	const char *jobid;
	const char *node;
	uint32_t server;    /* its position in its name */
	/*
	 * The addresses to which clients connect; PMIx 3 and older use [1]. In the byte
	 * order of the machine.
	 */
	uint32_t address[2];
	uint16_t port[2];
	const char *gds, *dir;
	/* Nodes of the job are one machine: Open MPI 4.1 names files of shared memory by
	   machine, job and local rank, so that ranks of several would take the same;
	   and 5.0 of Debian 13 finds no way to them over IPv6. */
	bool shares_machine;
};

/* The directory of the shared memory of gds "ds21". */
#define PMIX_ENV_DS21 "PMIX_DSTORE_21_BASE_PATH"

/* Calls `set` for each; `weak`: what the user has set counts. */
void pmix_env_each(const struct pmix_env *e,
		   void (*set)(void *arg, const char *name, const char *value, bool weak),
		   void *arg);
