/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What agent_control.c, the way of control messages through the tree, and
 * agent_srun.c, the connection to srun, share. The agent's loop.
 */
#ifndef PMI2X_AGENT_CONTROL_H
#define PMI2X_AGENT_CONTROL_H

#include "agent/agent_internal.h"


struct request {
	struct request *next;
	uint32_t origin;
	uint32_t id;
	uint64_t index;        /* among the frames sent to the parent */
	struct payload *frame; /* kept while it is the parent's; else NULL */
};

/*
 * IDLE -> CONNECTING -> UP -> IDLE (closed by srun; the next frame tries again)
 *             +-> LOST   +--> CLOSING (not needed any more) -> IDLE
 */
enum srun_state {
	SRUN_IDLE,
	SRUN_CONNECTING,
	SRUN_UP,
	SRUN_CLOSING,
	SRUN_LOST,
};

struct agent_control {
	enum srun_state srun;
	struct link *link;        /* NULL while there is no attempt */
	uv_timer_t retry;
	uint64_t since;           /* loop time of the first attempt, ms */
	uint32_t backoff_ms;
	struct payload_vec queue; /* frames for srun until it is UP */
	struct request *requests;
	unsigned nrequests;
	struct payload_vec failed; /* replies that are delivered from the loop */
	uv_timer_t soon;
	bool abort_passed;
	bool report_passed;
	bool gave_up_passed;
	bool direct;              /* as if there were no parent, while UP */
	bool quiet;               /* nothing waits for srun: a failure is none */
	bool again;               /* needed, though it is CLOSING */
	struct payload *report;   /* went to the parent: why others may abort */
	struct payload *abort;    /* went to the parent */
	bool abort_queued;        /* it has not been sent to srun yet */
};

/* ---- agent_control.c ---- */

/* Fail all requests that have gone to srun directly. */
void control_fail_direct(struct agent *a, const char *why);
/* There is a parent to which frames can be given. */
bool control_has_parent(const struct agent *a);

/* ---- agent_srun.c ---- */

int srun_open(struct agent *a);
void srun_close(struct agent *a);
/* 0, or a negative errno: a request in the frame is to be answered with a failure. */
int srun_send(struct agent *a, struct payload *frame);
/*
 * A frame could neither be sent nor kept, for want of memory. Nobody waits for ever
 * for an abort: the host ends the step without srun.
 */
void srun_frame_lost(struct agent *a, const void *data, size_t len);

#endif
