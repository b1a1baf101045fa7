/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that both sides of the ring share on the fabric: the open device, one
 * completion queue with its channel, and one registered piece of memory.
 */
#pragma once

#include "transport.h"
#include "verbs_port.h"

/*
 * Messages are sent into receive buffers with credits, not written with RDMA: the
 * owner copies every message into its place anyway, a write with immediate uses up
 * a receive request and needs credits as well, and addresses would have to carry
 * keys and pointers. Eight messages of 32 KiB under way fill 100 Gb/s at round
 * trips of 20 us, some ten times a fabric's.
 */
#define VERBS_MESSAGES 9  /* credits of a side; one is for the last message */
/*
 * Receive requests beyond those: a hello, a goodbye, and two returns of credits,
 * as each returns at least half of them.
 */
#define VERBS_CONTROLS 4
#define VERBS_RECEIVES (VERBS_MESSAGES + VERBS_CONTROLS)
#define VERBS_READY_RECEIVES 8    /* receive requests for datagrams */
#define VERBS_READY_LEN 128 /* bytes of a datagram's buffer */

/* The purpose of a work request; with side and buffer it makes the wr_id. */
enum verbs_work {
	WORK_RECEIVE,
	WORK_SEND,
	WORK_CONTROL,
	WORK_PROBE,
	WORK_READY_RECEIVE,
	WORK_READY_SEND,
};

static inline uint64_t verbs_wr_id(enum verbs_work work, enum ring_side side,
				   unsigned buffer)
{
	return (uint64_t)work << 16 | (uint64_t)side << 8 | buffer;
}

static inline enum verbs_work verbs_wr_work(uint64_t wr_id)
{
	return (enum verbs_work)(wr_id >> 16);
}

static inline enum ring_side verbs_wr_side(uint64_t wr_id)
{
	return (enum ring_side)(wr_id >> 8 & 0xff);
}

static inline unsigned verbs_wr_buffer(uint64_t wr_id)
{
	return wr_id & 0xff;
}

struct verbs_device {
	struct verbs_calls calls;
	struct verbs_settings settings;
	struct verbs_port port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char *memory;              /* as long as mr */
	struct ibv_wc found[16];   /* by waiting, not handled yet */
	int found_count;
	bool armed;                /* an event of the queue is under way */
	bool has_event;            /* of the device */
	char trouble[64];          /* the port's, empty: none */
	bool dead;                 /* the device is gone; see trouble */
};

/*
 * Fills a zero-filled structure, the calls included unless they are there. 0, or
 * negative errno and `why`; to be closed in both cases.
 */
int verbs_device_open(struct verbs_device *d, char *why);
/* After the queue pairs. */
void verbs_device_close(struct verbs_device *d);

/* rc; for a negative errno `why` says that it cannot do `what`, and the reason. */
int verbs_cannot(char *why, const char *what, int rc);

/* Buffers: where they are in `memory`. */
char *verbs_receive_buffer(const struct verbs_device *d, enum ring_side side,
			   unsigned buffer);
char *verbs_send_buffer(const struct verbs_device *d, enum ring_side side,
			unsigned buffer);
/* The first VERBS_READY_RECEIVES receive, and one for each side sends. */
char *verbs_listener_buffer(const struct verbs_device *d, unsigned buffer);

/* The way to an address, for a connection or a datagram. */
void verbs_device_route(const struct verbs_device *d, uint16_t lid,
			const union ibv_gid *gid, struct ibv_ah_attr *out);

/* Completions that are there, at most n. */
int verbs_device_poll(struct verbs_device *d, struct ibv_wc *wc, int n);
/* Wait for a completion or an event, polling before blocking. */
void verbs_device_wait(struct verbs_device *d, int timeout_ms);
/* Note what events say about the port and the device; true: some were there. */
bool verbs_device_events(struct verbs_device *d);
