/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-topology, which finds out once a node what each rank would find out by itself.
 * Its inputs from its parent (src/supervisor), and its messages:
 *
 *   arguments    UID GID STEP NODE DIR [CGROUP ...]. DIR is where the file will lie;
 *                the rest as for pmi2x-agent
 *   descriptors  enum topology_fd
 *   messages     (libconfine/host_msg.h) HOST_READY, then HOST_END: the text is complete;
 *                or HOST_KILL: there will be none, and why; HOST_CRASHED
 */
#pragma once

#include <stddef.h>

#include "libconfine/agent_fd.h"

enum topology_fd {
	TOPOLOGY_FD_FILE = AGENT_FD_SETUP, /* empty; the XML is written to it */
	TOPOLOGY_FD_HOST = AGENT_FD_HOST,  /* where the last words of a crash go */
	TOPOLOGY_FD_END,
};

#define TOPOLOGY_BYTES_MAX ((size_t)64 << 20) /* of XML; a large machine has 1 MB */
#define TOPOLOGY_WHY_MAX 256

/*
 * Find out the topology of the part of this machine that the calling process may use,
 * with all objects, I/O included, and write it as XML to `fd`. Changes the environment. 0, or a
 * negative errno with a reason in `why`.
 */
int topology_export(int fd, char why[TOPOLOGY_WHY_MAX]);
