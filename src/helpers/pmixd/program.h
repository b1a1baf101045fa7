/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of pmi2x-pmixd once it has given up its rights. */
#pragma once

#include "helpers/pmixd/server.h"

struct program_options {
	struct server_options server;
	const char *library;
	uint32_t uid; /* the user whose processes are clients */
	bool listens; /* false: the host hands clients over */
	const char *unrestricted; /* what foreign_restrict could not set; "": all is set */
};

/* Serve until the agent or the host ends the connection. The exit code. */
int program_run(const struct program_options *o);

/* Tell the host that it cannot serve. Returns 1. */
int program_give_up(const char *why);
