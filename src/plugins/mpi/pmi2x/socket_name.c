/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Short names of sockets: a hash of what tells them apart. */
#include "socket_name.h"

#include <stdio.h>
#include <string.h>

#include "libutil/hash.h"

/* A collision within a step's lifetime costs that step its socket, and says so. */
void socket_name(char out[SOCKET_NAME_BYTES], const char *jobid, uint32_t run,
		 uint32_t node_id)
{
	uint64_t seed = (uint64_t)run << 32 | node_id;

	snprintf(out, SOCKET_NAME_BYTES, SOCKET_NAME_PREFIX "%08x",
		 hash_seeded(seed, jobid, strlen(jobid)));
}
