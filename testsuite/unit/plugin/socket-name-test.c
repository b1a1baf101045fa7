/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets for connect-back messages: names that tell steps and nodes apart, and fit. */
#include "unit.h"

#include <stdio.h>

#include "socket_name.h"

#define SPOOL_PROMISED 92 /* bytes of SlurmdSpoolDir, says mpi_pmi2x.conf(5) */
#define JOBID_LONGEST "4294967295.4294967295"

TEST(names_of_steps_runs_and_nodes_differ)
{
	char a[SOCKET_NAME_BYTES], b[SOCKET_NAME_BYTES];

	socket_name(a, "7.0", 1, 0);
	socket_name(b, "7.0", 1, 0);
	assert_string_equal(a, b);
	socket_name(b, "7.1", 1, 0);
	assert_string_not_equal(a, b);
	socket_name(b, "7.0", 2, 0);
	assert_string_not_equal(a, b);
	socket_name(b, "7.0", 1, 1);
	assert_string_not_equal(a, b);
	socket_name(b, "7.0", 0, 1);
	assert_string_not_equal(a, b);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

TEST(names_of_many_nodes_differ)
{
	enum { NODES = 4096 };
	static char names[NODES][SOCKET_NAME_BYTES];

	for (uint32_t i = 0; i < NODES; i++)
		socket_name(names[i], "123456.7", 0xdba0088b, i);
	qsort(names, NODES, sizeof(names[0]), by_text);
	for (uint32_t i = 1; i < NODES; i++)
		assert_string_not_equal(names[i - 1], names[i]);
}

TEST(every_name_has_the_prefix_and_the_same_length)
{
	char name[SOCKET_NAME_BYTES];

	socket_name(name, "1.0", 0, 0);
	assert_int_equal(strlen(name), SOCKET_NAME_BYTES - 1);
	socket_name(name, JOBID_LONGEST, UINT32_MAX, UINT32_MAX);
	assert_int_equal(strlen(name), SOCKET_NAME_BYTES - 1);
	assert_memory_equal(name, SOCKET_NAME_PREFIX, strlen(SOCKET_NAME_PREFIX));
}

TEST(name_fits_the_longest_spool_directory)
{
	char spool[SPOOL_PROMISED + 1], name[SOCKET_NAME_BYTES], path[256];

	assert_int_equal(SOCKET_DIRECTORY_MAX, SPOOL_PROMISED);
	memset(spool, 'd', SPOOL_PROMISED);
	spool[SPOOL_PROMISED] = '\0';
	socket_name(name, JOBID_LONGEST, UINT32_MAX, UINT32_MAX);
	snprintf(path, sizeof(path), "%s/%s", spool, name);
	assert_int_equal(strlen(path), SOCKET_PATH_MAX);
}
