/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent as a process does it: what it is told, its loop, and its host. */
#pragma once

#include "agent/setup.h"

/*
 * Read the setup from one descriptor, serve the step, and ask who is at the other end
 * of `host_fd` (libconfine/host_msg.h) for what an agent needs; when that ends, so does
 * this, at once. `build`: of this program; NULL: as in the setup. `netinfo`: of
 * netinfo_create, which is taken over; NULL: it is called when a rank asks. Takes over
 * all descriptors. The exit code. Any thread, which it keeps until the agent has left.
 */
int agent_program(int setup_fd, int host_fd, const struct agent_fds *fds,
		  const char *build, char *netinfo);
