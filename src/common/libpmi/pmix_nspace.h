/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A namespace of PMIx as a node sees it, and its form as bytes (PMIX_MSG_NSPACE). It has
 * all that a server must tell its clients of the job.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcoll/layout.h"
#include "libutil/buf.h"

#define PMIX_NSPACE_NAME_MAX 255 /* bytes, a limit of PMIx */

struct pmix_nspace {
	const char *name;           /* "pmi2x.<job>.<step>" */
	struct layout *layout;
	uint32_t position;          /* of this node */
	const char **node_names;    /* by node id; unique */
	uint32_t universe_size;     /* processes the allocation can hold */
	uint32_t *app_sizes;        /* as in struct pmi_step; NULL: one application */
	uint32_t *app_numbers;
	uint32_t napps;
	uint32_t uid, gid;          /* of its processes */
	const char *parent;         /* namespace of who spawned it; NULL: nobody did */
	uint32_t parent_rank;
	const char *topology;       /* path of the node's topology as XML, or NULL */
	void *own;                  /* of one that was read: what it points to */
};

/* The name for a step, "<job>.<step>" (NULL: ""). */
void pmix_nspace_name(char out[PMIX_NSPACE_NAME_MAX + 1], const char *jobid);
/* Append it. 0, -ENOBUFS or -ENOMEM. */
int pmix_nspace_pack(struct buf *b, const struct pmix_nspace *n);
/*
 * Read one from untrusted bytes, of which it keeps a copy. 0, -EPROTO or -ENOMEM;
 * pmix_nspace_free is due on success.
 */
int pmix_nspace_unpack(struct pmix_nspace *out, const void *data, size_t len);
void pmix_nspace_free(struct pmix_nspace *n);
