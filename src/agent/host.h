/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of the program around an agent, for the agent. Nothing here may block.
 * Calls, and the answers, are in the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libio/frames.h"
#include "libio/holder.h"

struct agent_host {
	/* Call agent_node_found, at once or later. */
	void (*find_node)(void *arg, uint32_t node_id);
	/*
	 * Hand `data` to another node's agent over a path that the site
	 * authenticates, and call agent_connect_back_sent when that has been done.
	 * 0, or a negative errno: it will not.
	 */
	int (*connect_back)(void *arg, uint32_t node_id, const void *data,
			    size_t len);
	/* End the step because srun cannot be told to. */
	void (*kill_step)(void *arg, const char *why);
	/*
	 * The process of the rank in `slot` is ending, or the kernel has no pidfd of it:
	 * call agent_rank_ended when it is known how the process has ended, at once or
	 * later. NULL: it never is.
	 */
	void (*ask_rank_end)(void *arg, uint32_t slot);
	/*
	 * Make the node's topology a file, and call agent_topology_known with its path.
	 * NULL: ranks are offered no such file.
	 */
	void (*want_topology)(void *arg);
	/*
	 * Find the process that has a socket (libio/holder.h), as the host may look at
	 * processes, and call agent_holder_found once, later. One question at a time. 0,
	 * or a negative errno: it will not. NULL, too: the agent looks by itself, as far
	 * as it may.
	 */
	int (*find_holder)(void *arg, const struct holder_question *q);
	/*
	 * The host is whom the step's control messages (libpmi/control.h) are for: take
	 * one up, and call agent_control with the answer, if any, later. NULL: they go
	 * to srun, see agent_options.launcher. 0; or a negative errno: it is not
	 * answered.
	 */
	int (*control)(void *arg, struct payload *frame);
	/*
	 * The host has a way to the neighbours: send a frame to the one at a position.
	 * Head and body are as of link_send; the other end's host gives it to
	 * agent_frame, in order. 0 or a negative errno: the neighbour is lost. Must not
	 * call back. NULL: the agent makes links of its own.
	 */
	int (*send)(void *arg, uint32_t position, enum frame_type type,
		    const void *head, size_t head_len,
		    const struct payload_vec *body);
	/*
	 * After agent_leave, again and again, each time within options.drain_ms: other
	 * nodes still need this one. NULL: nobody wants to know.
	 */
	void (*stays)(void *arg);
	/*
	 * The host has a way to who serves the node's PMIx clients: send a message of
	 * libpmi/pmix_msg.h without its data, and these, or NULL. Messages before that of
	 * the namespace need not arrive. Must not call back. NULL: there is
	 * agent_fds.pmix, or no PMIx.
	 */
	void (*pmix_send)(void *arg, const void *head, size_t len,
			  struct payload *data);
	/*
	 * With agent_options.torch_ports_wanted: the ports that the first node keeps, or
	 * zeroes: it has left the step. Called once. NULL otherwise.
	 */
	void (*torch_ports_known)(void *arg, const uint16_t ports[]);
	/* The agent has closed all that it has. Only kill_step may be called after it. */
	void (*left)(void *arg);
	void *arg;
};
