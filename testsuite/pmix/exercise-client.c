/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of all actions of pmix-exercise. */
#include "exercise.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

pmix_proc_t me;
uint32_t size;

void check(bool good, const char *format, ...)
{
	va_list args;

	if (good)
		return;
	fprintf(stderr, "rank %u: ", me.rank);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(5);
}

pmix_proc_t proc_of(uint32_t rank)
{
	pmix_proc_t p;

	PMIX_LOAD_PROCID(&p, me.nspace, rank);
	return p;
}

uint32_t get_u32(const pmix_proc_t *p, const char *key)
{
	pmix_value_t *v;
	uint32_t n;
	pmix_status_t rc = PMIx_Get(p, key, NULL, 0, &v);

	check(rc == PMIX_SUCCESS, "get %s of %u: %s", key, p->rank,
	      PMIx_Error_string(rc));
	n = v->type == PMIX_UINT16 ? v->data.uint16 :
	    v->type == PMIX_PROC_RANK ? v->data.rank : v->data.uint32;
	PMIX_VALUE_RELEASE(v);
	return n;
}

static void value_of(char *out, size_t len, uint32_t rank, int round)
{
	snprintf(out, len, "value %d of %u, before key-%d", round, rank, round + 1);
}

void put(int round)
{
	char key[32], text[64];
	pmix_value_t v = { .type = PMIX_STRING, .data.string = text };

	snprintf(key, sizeof(key), "key-%d", round);
	value_of(text, sizeof(text), me.rank, round);
	CHECK(PMIx_Put(PMIX_GLOBAL, key, &v));
	CHECK(PMIx_Commit());
}

void get(uint32_t rank, int round)
{
	pmix_proc_t p = proc_of(rank);
	pmix_value_t *v;
	pmix_status_t rc;
	char key[32], text[64];

	snprintf(key, sizeof(key), "key-%d", round);
	value_of(text, sizeof(text), rank, round);
	rc = PMIx_Get(&p, key, NULL, 0, &v);
	check(rc == PMIX_SUCCESS, "get %s of %u: %s", key, rank, PMIx_Error_string(rc));
	check(v->type == PMIX_STRING && !strcmp(v->data.string, text), "%s of %u: %s",
	      key, rank, v->type == PMIX_STRING ? v->data.string : "no text");
	PMIX_VALUE_RELEASE(v);
}

void fence(const pmix_proc_t procs[], size_t n, bool collect)
{
	pmix_info_t info = { .key = PMIX_COLLECT_DATA,
			     .value = { .type = PMIX_BOOL, .data.flag = collect } };
	pmix_status_t rc = PMIx_Fence(procs, n, &info, 1);

	check(rc == PMIX_SUCCESS, "fence: %s", PMIx_Error_string(rc));
}

void fence_all(bool collect)
{
	pmix_proc_t all = proc_of(PMIX_RANK_WILDCARD);

	fence(&all, 1, collect);
}
