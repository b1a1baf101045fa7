/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of the nodes, and the way to reach an agent through Slurm. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct connect_back_socket {
	int fd;        /* listening, CLOEXEC; -1: none, or given to the agent */
	char *path;    /* on this node, to be unlinked; NULL: there is none */
	const char *jobid; /* the caller's; names the sockets of all nodes */
	uint32_t run;
};

/*
 * The address that slurm.conf or the controller gives a node. 0 or -EHOSTUNREACH;
 * -EAGAIN, unless `may_block`: a name has to be looked up. Any thread.
 */
int node_address_of(const char *node, bool may_block,
		    struct sockaddr_storage *out);

/*
 * Whether slurm.conf has another of the `count` nodes on the machine of node `self`:
 * several slurmds run there. Looks no further where node and machine have one name.
 */
bool node_shares_machine(char *const *names, uint32_t count, uint32_t self);

/*
 * The unix socket to which slurmd delivers what slurm_forward_data sends here.
 * It belongs to `uid`: slurmd connects as the step's user. 0 or a negative errno:
 * the step works without, unless ports are taken. Others can be told in either case.
 * Another error than -ENAMETOOLONG has a line in the log; see connect_back_send.
 *
 * `run` is random: a job that is requeued has its number again, and so have its steps.
 * The socket of a killed slurmstepd must not be taken for a later one's.
 */
int connect_back_socket_open(struct connect_back_socket *t, const char *node,
			     uint32_t node_id, const char *jobid, uint32_t run,
			     uid_t uid);
void connect_back_socket_unlink(const struct connect_back_socket *t);
/*
 * Unlinks it, and what steps whose slurmstepd was killed have left on this node;
 * leaves fd alone.
 */
void connect_back_socket_close(struct connect_back_socket *t);

/*
 * Send `data` to the tell socket of another node, through its slurmd. Blocks.
 * 0 or a negative errno: -ENOENT or -ECONNREFUSED when slurmd finds nobody who
 * listens there; -ENAMETOOLONG: no socket has such a long path; -EHOSTUNREACH: slurmd
 * does not answer; else -EIO. All but the first two have a debug line.
 */
int connect_back_send(const struct connect_back_socket *t, const char *node,
		      uint32_t node_id, const void *data, size_t len);
