/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of the sockets at which nodes of a step hear connect-back messages. They lie in
 * SlurmdSpoolDir, whose name may be long, and the address of a Unix socket is short.
 */
#pragma once

#include <stdint.h>
#include <sys/un.h>

#define SOCKET_NAME_PREFIX "pmi2x-"
#define SOCKET_NAME_BYTES (sizeof(SOCKET_NAME_PREFIX) + 8) /* NUL included */

#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
/* Bytes of the longest directory for such a socket. */
#define SOCKET_DIRECTORY_MAX (SOCKET_PATH_MAX - SOCKET_NAME_BYTES)

/*
 * The name is the same on all nodes. `run` is random, so that no earlier step has had
 * it; `node_id` keeps the components of a het step on one node apart.
 */
void socket_name(char out[SOCKET_NAME_BYTES], const char *jobid, uint32_t run,
		 uint32_t node_id);
