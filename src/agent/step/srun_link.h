/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection to srun: made when a frame is for it, or srun is to be able to
 * ask, and closed when nothing needs it any more.
 */
#pragma once

#include "agent/step/service_internal.h"

/* Upcalls. */
struct srun_link_ops {
	/* The link is up, and all that waited for it is sent. */
	void (*up)(struct service *s);
	/* A control frame of srun. 0 or -EPROTO. */
	int (*frame)(void *service, struct payload *frame);
	/* Requests that were sent over it get no answer any more. */
	void (*failed)(struct service *s, const char *why);
};

/* 0 or a negative errno. */
int srun_link_open(struct service *s);
void srun_link_close(struct service *s);
void srun_link_free(struct service *s);

/*
 * A frame for srun: connects when needed. 0, or a negative errno: a request in the
 * frame is to be answered with a failure. When an abort cannot be sent, the host ends
 * the step.
 */
int srun_link_send(struct service *s, struct payload *frame);
/*
 * A frame could neither be sent nor kept, for lack of memory. Nobody waits forever
 * for an abort: the host ends the step without srun.
 */
void srun_link_frame_lost(struct service *s, const void *data, size_t len);

/* Connect, so that srun can ask; not when that has failed before. */
void srun_link_connect(struct service *s);
/*
 * There is no link, but the node will connect: peers_answer gets the outcome. A report of
 * peers, with the service as its argument.
 */
bool srun_link_will_connect(void *service);
bool srun_link_is_up(const struct service *s);
/*
 * A question to srun itself. While there is no connection one is made instead; the
 * question is lost.
 */
void srun_link_ask(struct service *s, const void *data, size_t len);
/* Nothing needs it any more. */
void srun_link_release(struct service *s);

/* Nothing waits to be written to it. */
bool srun_link_is_flushed(const struct service *s);
/* Say goodbye; it has gone. */
void srun_link_leave(struct service *s);
bool srun_link_is_gone(const struct service *s);
