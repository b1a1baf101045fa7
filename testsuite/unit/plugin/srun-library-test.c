/* SPDX-License-Identifier: GPL-2.0-or-later */
/* srun's end as a library: the built one works, others are refused by name. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "srun_library.h"

static char said[LOG_LINE_MAX];

static void keep_line(void *arg, enum log_level level, const char *text)
{
	assert_int_equal(level, LOG_LEVEL_ERROR);
	snprintf(said, sizeof(said), "%s", text);
}

static const struct log_hook keep = { keep_line, NULL };

TEST(the_built_one_serves)
{
	const struct srun_library *l = NULL;
	const struct srun_server_host host = { 0 };
	struct srun_server_options options = {
		.jobid = "1.0", .parent_fd = -1, .handshake_ms = 60000,
	};
	struct srun_server *server;

	assert_int_equal(srun_library_open(&l, BUILT_SRUN_LIBRARY, &keep), 0);
	options.build = l->build;
	assert_int_equal(l->server_start(&server, &options, &host, &keep), 0);
	assert_int_not_equal(l->server_port(server), 0);
	l->server_stop(server, 0);
}

/* Refused, with a line that has both words. */
static void refused(const char *path, const char *what, const char *remedy)
{
	const struct srun_library *l = NULL;

	said[0] = '\0';
	assert_int_equal(srun_library_open(&l, path, &keep), -ELIBACC);
	assert_null(l);
	if (!strstr(said, path) || !strstr(said, what) ||
	    !strstr(said, remedy))
		fail_msg("said: %s", said);
}

TEST(a_missing_one_is_named)
{
	refused("/nowhere/libpmi2x-srun.so", "No such file", "install");
}

TEST(another_library_is_none)
{
	refused("libc.so.6", SRUN_LIBRARY_SYMBOL, "install");
}

TEST(another_interface_is_refused)
{
	refused(OTHER_SRUN_LIBRARY, "has interface 1000", "the same release");
}
