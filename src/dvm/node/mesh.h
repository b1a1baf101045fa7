/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links between the daemons of a DVM, made for the first frame to a node, and shared by all
 * tasks. Each side sends over the link that it made. A side that had none yet sends over
 * the link that the other made, and stays with that: so frames from one node to another
 * arrive in order.
 *
 * The links carry frames of agents (agent/agent.h), as FRAME_COLLECTIVE with a head: u64
 * task, u32 instance, u32 position of the sender in the task, u8 type of the frame; and its
 * own head.
 *
 * If the network fails for a short time, the link is tried again, and its frames wait. A
 * refused connection is not tried again: that daemon has ended.
 *
 * All calls and callbacks are in the loop's thread. pool_send never calls back.
 */
#pragma once

#include <stdint.h>

#include "dvm/core/dvm_msg.h"
#include "libio/frames.h"
#include "libio/handshake.h"
#include "libio/link.h"
#include "libio/loop.h"
#include "libutil/log.h"

struct pool;

struct pool_frame {
	uint64_t task;
	uint32_t instance;
	uint32_t from; /* position in the task */
	enum frame_type type;
	const void *head;
	size_t head_len;
};

struct pool_ops {
	/* A frame of the daemon at a node has come. Non-zero ends the link. */
	int (*frame)(void *arg, uint32_t node, const struct pool_frame *f,
		     struct payload *body);
	/* The node cannot be reached, or a link to it has broken; `why` is for messages. */
	void (*lost)(void *arg, uint32_t node, const char *why);
	/*
	 * A head has called (dvm_msg.h, CALL), and no later head has. The link is the
	 * callee's: see link_hand_over.
	 */
	void (*head)(void *arg, struct link *l);
	/*
	 * The daemon of another node sends a bundle (core/bundle.h), its first frame: this
	 * node is to be its parent. The link is the callee's. NULL: this ends the link.
	 */
	void (*child)(void *arg, struct link *l, struct payload *body);
};

struct pool_options {
	bool local;         /* listen on 127.0.0.1 */
	uint32_t retry_ms;  /* how long a link that cannot be made is tried again; 0: no new
	                       try */
};

/*
 * Listen. `self`, whose position is the node's in the DVM, and `log` outlive the pool. 0 or
 * a negative errno.
 */
int pool_open(struct pool **out, struct loop *loop, const struct handshake_self *self,
	      const struct pool_options *options, const struct pool_ops *ops, void *arg,
	      const struct log_hook *log);
/* The port of the mesh. */
uint16_t pool_port(const struct pool *p);
/*
 * A descriptor of the listening socket, which pool_destroy closes: no connection is refused
 * before.
 */
int pool_listener(const struct pool *p);
/*
 * Send a frame. 0 or a negative errno; the body (NULL: empty) is referenced. `address`
 * NULL: -ENOTCONN unless there is a link.
 */
int pool_send(struct pool *p, uint32_t node, const struct dvm_address *address,
	      const struct pool_frame *f, const struct payload_vec *body);
/* Close all links. NULL is allowed. */
void pool_close(struct pool *p);
/* Free the pool, after the loop and all ranks have ended. NULL is allowed. */
void pool_destroy(struct pool *p);
