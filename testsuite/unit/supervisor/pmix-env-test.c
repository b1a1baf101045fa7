/* SPDX-License-Identifier: BSD-3-Clause */
/* By what PMIx clients find the server, and the data of the job. */
#include "unit.h"

#include <stdio.h>

#include "supervisor/pmix_env.h"

#define VARIABLES 16

struct variables {
	size_t count;
	char lines[VARIABLES][128];
};

static void keep(void *arg, const char *name, const char *value, bool weak)
{
	struct variables *v = arg;

	assert_true(v->count < VARIABLES);
	snprintf(v->lines[v->count++], sizeof(v->lines[0]), "%s=%s", name, value);
}

static bool has(const struct variables *v, const char *line)
{
	for (size_t i = 0; i < v->count; i++)
		if (!strncmp(v->lines[i], line, strlen(line)))
			return true;
	return false;
}

static struct variables of(const char *gds)
{
	const struct pmix_env e = {
		.jobid = "7.0", .node = "n3", .server = 2,
		.address = { 0x7f000001, 0x7f000001 }, .port = { 4000, 4001 },
		.gds = gds, .dir = "/spool/dir",
	};
	struct variables v = {};

	pmix_env_each(&e, keep, &v);
	return v;
}

TEST(a_release_finds_its_address)
{
	struct variables v = of("hash");

	assert_true(has(&v, "PMIX_SERVER_URI4=pmi2x-pmixd.2;tcp4://127.0.0.1:4000"));
	assert_true(has(&v, "PMIX_SERVER_URI3=pmi2x-pmixd.2;tcp4://127.0.0.1:4001"));
	assert_true(has(&v, "PMIX_NAMESPACE=pmi2x.7.0"));
}

TEST(files_are_named_where_they_are)
{
	struct variables v = of("ds21");

	assert_true(has(&v, "PMIX_GDS_MODULE=ds21,hash"));
	assert_true(has(&v, PMIX_ENV_DS21 "=/spool/dir/ds21"));
}

TEST(without_files_the_server_is_asked)
{
	static const char *const words[] = { "hash", "none" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct variables v = of(words[i]);

		assert_true(has(&v, "PMIX_GDS_MODULE=hash"));
		assert_false(has(&v, PMIX_ENV_DS21));
	}
}

TEST(automatic_gds_sets_no_variable)
{
	struct variables v = of("auto");

	assert_false(has(&v, "PMIX_GDS_MODULE"));
	assert_false(has(&v, PMIX_ENV_DS21));
}
