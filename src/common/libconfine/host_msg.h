/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of an agent to the process that has started it, and the answers: one message
 * each over a SOCK_SEQPACKET pair. The reader of a message trusts it as little as a
 * stranger's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "libutil/buf.h"
#include "libutil/passed_fds.h"

#define HOST_VERSION 4        /* of these messages; the first of the agent has it */
#define HOST_DATA_MAX 4096    /* bytes of `data` */
#define HOST_MSG_MAX (HOST_DATA_MAX + 32)

enum host_type {
	/* Sent by the agent. */
	HOST_READY = 1, /* number: HOST_VERSION; data: its build */
	HOST_FIND,      /* number: a node id */
	HOST_CONNECT_BACK,      /* number: a node id; data: the message */
	HOST_KILL,      /* data: why */
	HOST_HOW_ENDED, /* number: a slot */
	HOST_LOG,       /* number: enum log_level; data: the line */
	HOST_CRASHED,   /* number: a signal; code: the system call of SIGSYS */
	HOST_END,       /* the sender closes the connection next */
	/* To the agent. */
	HOST_FOUND,     /* number: node id; code: 0, negative errno; data: address */
	HOST_CONNECT_BACK_SENT,      /* number: node id; code: 0, negative errno */
	HOST_ENDED,     /* number: slot; code: wait status; data: one byte, whether
	                   the launcher ended it */
	HOST_LEAVE,     /* the node's ranks have ended: finish */
	/* Sent by the agent, too: a rank wants the node's topology; and the answer. */
	HOST_WANT_TOPOLOGY,
	HOST_TOPOLOGY,  /* code: 0, negative errno: there is none; data: the path */
	HOST_STAYS,     /* of the agent, after HOST_LEAVE: agent_host.stays */
	/* To pmi2x-pmixd: with the connection of a client. */
	HOST_CLIENT,    /* number: 1: it is of PMIx 3 or older */
	HOST_SERVES,    /* of pmi2x-pmixd: clients can be served */
	/*
	 * Sent by the agent: which process has a socket; and the answer. One at a time.
	 */
	HOST_FIND_HOLDER, /* data: libio/holder.h, packed */
	HOST_HOLDER,      /* code: of holder_find */
	HOST_TORCH_PORTS, /* of the agent; number: both ports, the first one in the upper half; 0: unknown */
	HOST_TYPES,
};

struct host_msg {
	enum host_type type;
	uint32_t number;
	int32_t code;
	const void *data; /* in what was received, not terminated */
	size_t len;
};

/* Append it. 0, -EMSGSIZE, -ENOBUFS or -ENOMEM. */
int host_msg_pack(struct buf *b, const struct host_msg *m);
/* 0 or -EPROTO. */
int host_msg_unpack(struct host_msg *m, const void *data, size_t len);
/* Pack and send without waiting. 0, -EAGAIN, or another negative errno. */
int host_msg_send(int fd, const struct host_msg *m);
/* Sends, and waits for room: also in a signal handler. Any thread. */
int host_msg_send_wait(int fd, const struct host_msg *m);
/* Without waiting and with descriptors, which stay the caller's. */
int host_msg_send_with(int fd, const struct host_msg *m, const struct passed_fds *fds);
/*
 * 1: a message in *m, which points into `room`; 0: none yet; -EPIPE: the connection has
 * ended; -EPROTO: the message is invalid, or carries descriptors. Descriptors are not
 * received, because closing them could block: the message stays, and hang_up is due. `fd`
 * has SO_PASSCRED. Does not block.
 */
int host_msg_receive(int fd, char room[HOST_MSG_MAX], struct host_msg *m);
/*
 * As above, and takes the descriptor that comes with it, CLOEXEC, or -1; from a host
 * that is trusted. Without SO_PASSCRED.
 */
int host_msg_receive_with(int fd, char room[HOST_MSG_MAX], struct host_msg *m,
			  int *passed);
