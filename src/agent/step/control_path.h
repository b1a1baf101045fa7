/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of control messages between the ranks of a step and srun. */
#pragma once

#include "agent/step/service_internal.h"
#include "libpmi/control.h"

/* 0 or a negative errno. */
int control_path_open(struct service *s);
void control_path_close(struct service *s);
void control_path_free(struct service *s);

/* A message of this node's. An operation of the engine, too; `service` is one. */
void control_path_send(void *service, const void *data, size_t len);
/* Pack and send one of this node's. */
void control_path_send_msg(struct service *s, struct control_msg *msg);
/* Ask srun to end the step and to print why; without srun, ask the host. */
void control_path_end_step(struct service *s, const char *why, int code);
/* As above; srun asks the nodes which ranks wait for a key of the store, and adds that. */
void control_path_end_waits(struct service *s, const char *why, int code);

/* Three of struct peers_ops, with the service. */
void control_path_ask_started(void *service, uint32_t position);
void control_path_unsent(void *service, const struct payload_vec *frame);
int control_path_from_child(void *service, uint32_t child, bool was_left,
			    struct payload *frame);
/* A reply, from above. */
void control_path_reply(struct service *s, uint32_t origin, uint32_t id,
			struct payload *frame);

/*
 * A reason to be connected to srun may have gone. Without any the link is closed: of
 * the nodes of a step only the first, and those that lack a way through it, keep one.
 */
void control_path_unneeded(struct service *s);
/*
 * The parent passes nothing on: connect to srun, and send it everything over that
 * connection while it is up. True once it is.
 */
bool control_path_bypass(struct service *s);
/* True: this node has a connection to srun now. */
bool control_path_is_direct(const struct service *s);
/* The parent is gone, see struct peer_gone. */
void control_path_parent_gone(struct service *s, const struct peer_gone *gone);
/* Events of the connection to srun. */
void control_path_srun_up(struct service *s);
void control_path_srun_failed(struct service *s, const char *why);

/*
 * The shorter of the times after which a collective that waits is reported or given
 * up, ms; 0: neither ever is.
 */
uint64_t control_path_patience(const struct service *s);
/*
 * Nothing waits for srun; of the requests of this node's ranks, which have ended,
 * nobody waits for the reply.
 */
bool control_path_is_flushed(const struct service *s);
