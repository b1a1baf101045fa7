/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of hwloc's variables are an outer step's, and which the user's. */
#include "unit.h"

#include "topology_env.h"

TEST(variables_of_an_outer_step_are_removed)
{
	char *env[] = { "A=1", "HWLOC_XMLFILE=/spool/pmi2x.topology.7.0.0.xml",
			"B=2", "HWLOC_THISSYSTEM=1", "C=3", NULL };

	topology_env_remove(env);
	assert_string_equal(env[0], "A=1");
	assert_string_equal(env[1], "B=2");
	assert_string_equal(env[2], "C=3");
	for (int i = 3; i < 6; i++)
		assert_null(env[i]);
	assert_false(topology_env_is_chosen(env));
}

TEST(variables_of_the_user_stay)
{
	char *env[] = { "HWLOC_XMLFILE=/home/me/node.xml", "HWLOC_THISSYSTEM=1",
			NULL };
	char *fsroot[] = { "HWLOC_FSROOT=/tmp/tree", NULL };
	char *other[] = { "HWLOC_XMLFILES=1", "HWLOC_THISSYSTEM=0", NULL };

	topology_env_remove(env);
	assert_non_null(env[1]);
	assert_true(topology_env_is_chosen(env));
	assert_true(topology_env_is_chosen(fsroot));
	topology_env_remove(other);
	assert_non_null(other[1]);
	assert_false(topology_env_is_chosen(other));
}
