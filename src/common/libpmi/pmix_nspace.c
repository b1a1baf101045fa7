/* SPDX-License-Identifier: BSD-3-Clause */
/* A namespace of PMIx as bytes. */
#include "libpmi/pmix_nspace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcoll/layout_code.h"
#include "libutil/coder.h"

static void code_nspace(struct coder *c, struct pmix_nspace *n)
{
	code_text(c, &n->name);
	code_u32(c, &n->position);
	code_u32(c, &n->universe_size);
	code_u32(c, &n->napps);
	code_numbers(c, &n->app_sizes, n->napps);
	code_numbers_if(c, &n->app_numbers, n->napps);
	code_u32(c, &n->uid);
	code_u32(c, &n->gid);
	code_text(c, &n->parent);
	code_u32(c, &n->parent_rank);
	code_text(c, &n->topology);
	code_layout(c, &n->layout);
	if (n->layout && !c->rc)
		code_names(c, &n->node_names, layout_nodes(n->layout));
}

void pmix_nspace_name(char out[PMIX_NSPACE_NAME_MAX + 1], const char *jobid)
{
	out[0] = '\0';
	if (jobid)
		snprintf(out, PMIX_NSPACE_NAME_MAX + 1, "pmi2x.%s", jobid);
}

int pmix_nspace_pack(struct buf *b, const struct pmix_nspace *n)
{
	struct pmix_nspace copy = *n; /* its fields are only read */
	struct coder c = { .out = b };
	size_t start = b->len;

	code_nspace(&c, &copy);
	if (c.rc)
		b->len = start;
	return c.rc;
}

static bool is_name(const char *name)
{
	return name && *name && strlen(name) <= PMIX_NSPACE_NAME_MAX;
}

/* True: they have as many processes as there are ranks. */
static bool apps_fit(const struct pmix_nspace *n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n->napps; i++)
		sum += n->app_sizes[i];
	return !n->napps || sum == layout_ranks(n->layout);
}

static bool is_sound(const struct pmix_nspace *n)
{
	return is_name(n->name) && (!n->parent || is_name(n->parent)) &&
	       n->layout && n->position < layout_nodes(n->layout) &&
	       n->node_names && apps_fit(n);
}

int pmix_nspace_unpack(struct pmix_nspace *out, const void *data, size_t len)
{
	struct coder c = { .out = NULL };
	int rc;

	memset(out, 0, sizeof(*out));
	out->own = malloc(len + 1);
	if (!out->own)
		return -ENOMEM;
	if (len)
		memcpy(out->own, data, len);
	cursor_init(&c.in, out->own, len);
	code_nspace(&c, out);
	rc = coder_end(&c);
	if (!rc && !is_sound(out))
		rc = -EPROTO;
	if (rc)
		pmix_nspace_free(out);
	return rc;
}

void pmix_nspace_free(struct pmix_nspace *n)
{
	free(n->app_sizes);
	free(n->app_numbers);
	free(n->node_names);
	layout_destroy(n->layout);
	free(n->own);
	memset(n, 0, sizeof(*n));
}
