/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-pmixd, which serves the PMIx clients of a node with libpmix. Its inputs from its
 * parent (src/supervisor), and its messages:
 *
 *   arguments    UID GID STEP NODE DIR LIBRARY GDS COLLECT PORT [CGROUP ...]
 *                DIR: its directory, the user's, mode 0700; who starts it removes it
 *                LIBRARY: path of libpmix.so.2
 *                GDS: where clients find what the server knows: enum pmixd_gds
 *                COLLECT: "store", "demand" or "auto": enum pmixd_collect
 *                PORT: of PMIXD_FD_LISTENER; 0: there is none. The host hands clients
 *                over (HOST_CLIENT): with PORT the first, after HOST_SERVES; else all
 *                the rest as for pmi2x-agent
 *   descriptors  enum pmixd_fd
 *   messages     (libconfine/host_msg.h) HOST_READY; HOST_SERVES, with PORT; HOST_KILL: it
 *                cannot serve, and why, and ends; HOST_LOG; HOST_CRASHED
 *
 * It ends at once, without a word, when the connection to the agent or to the host
 * ends. Environment of its clients: PMIXD_SERVER_NSPACE and the node's position name it
 * in PMIX_SERVER_URI*: "<PMIXD_SERVER_NSPACE>.<position>;tcp4://127.0.0.1:<port>". One
 * without PORT may serve several namespaces, in which the node has several positions:
 * 0 is there instead.
 */
#pragma once

#include "libconfine/agent_fd.h"

enum pmixd_fd {
	PMIXD_FD_AGENT = AGENT_FD_SETUP, /* SOCK_STREAM: libpmi/pmix_msg.h */
	PMIXD_FD_HOST = AGENT_FD_HOST,   /* SOCK_SEQPACKET: libconfine/host_msg.h */
	PMIXD_FD_LISTENER,     /* bound to 127.0.0.1:PORT, and listening; or closed */
	PMIXD_FD_LISTENER_OLD, /* the same for clients of PMIx 3 and older; or closed */
	PMIXD_FD_DIR,          /* its directory, whose lock it keeps; or closed */
	PMIXD_FD_END,
};

#define PMIXD_SERVER_NSPACE "pmi2x-pmixd"

#define PMIXD_ARGS 10 /* before the cgroups, the program's name among them */

/* Where clients find the server's data, as libpmix names it. */
enum pmixd_gds {
	PMIXD_GDS_AUTO, /* "auto": in shared memory, if libpmix has such as can be found
	                   by who has connected */
	PMIXD_GDS_DS21, /* "ds21": in PMIXD_DS21, where clients of libpmix 4 look before
	                   they connect; it is there when HOST_SERVES comes */
	PMIXD_GDS_HASH, /* "hash": the topology only is in a file */
	PMIXD_GDS_NONE, /* "none": nothing is */
};

#define PMIXD_DS21 "ds21" /* in DIR; a client that does not find it asks the server */

/* The use of data that ranks enter a fence with. */
enum pmixd_collect {
	PMIXD_COLLECT_AUTO,   /* "auto": the last, in jobs of up to 256 ranks */
	PMIXD_COLLECT_DEMAND, /* "demand": give it to libpmix when a client asks for it */
	PMIXD_COLLECT_STORE,  /* "store": give it to libpmix at once */
};
