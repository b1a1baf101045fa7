// SPDX-License-Identifier: BSD-3-Clause
/*
 * A PMIx client: each rank prints its argument, its number, its application, its rank in
 * that, and its size.
 */
#include <pmix.h>
#include <stdio.h>

static pmix_proc_t me;

/* -1: there is none. */
static long number(pmix_rank_t rank, const char *key, pmix_info_t *info, size_t n)
{
	pmix_proc_t proc = me;
	pmix_value_t *value = NULL;
	long found = -1;

	proc.rank = rank;
	if (PMIx_Get(&proc, key, info, n, &value) || !value)
		return -1;
	if (value->type == PMIX_UINT32)
		found = value->data.uint32;
	else if (value->type == PMIX_PROC_RANK)
		found = value->data.rank;
	PMIX_VALUE_RELEASE(value);
	return found;
}

static long app_size(long app)
{
	uint32_t number_of_app = app;
	pmix_info_t info[2];
	bool yes = true;

	PMIX_INFO_LOAD(&info[0], PMIX_APP_INFO, &yes, PMIX_BOOL);
	PMIX_INFO_LOAD(&info[1], PMIX_APPNUM, &number_of_app, PMIX_UINT32);
	return number(PMIX_RANK_WILDCARD, PMIX_APP_SIZE, info, 2);
}

int main(int argc, char **argv)
{
	long app;

	if (PMIx_Init(&me, NULL, 0))
		return 1;
	app = number(me.rank, PMIX_APPNUM, NULL, 0);
	printf("%s %u: %ld, %ld of %ld\n", argc > 1 ? argv[1] : "", me.rank, app,
	       number(me.rank, PMIX_APP_RANK, NULL, 0), app_size(app));
	return PMIx_Finalize(NULL, 0);
}
