/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions in the place of libibverbs, for tests on machines without devices:
 * they count what is open, and fail when they are told to.
 */
#pragma once

#include <infiniband/verbs.h>

#define FAKE_DEVICES_MAX 4
#define FAKE_PORTS_MAX 2
#define FAKE_GIDS_MAX 4

struct fake_gid {
	const char *address; /* as inet_pton takes it; NULL: an empty place */
	const char *type;    /* as sysfs has it; NULL: none */
};

struct fake_port {
	enum ibv_port_state state;
	uint8_t link_layer;
	uint16_t lid;
	uint8_t width, speed;
	struct fake_gid gids[FAKE_GIDS_MAX];
};

struct fake_device {
	const char *name;
	struct fake_port ports[FAKE_PORTS_MAX]; /* to the first of state 0 */
};

struct fake {
	struct fake_device devices[FAKE_DEVICES_MAX]; /* to the first unnamed */
	int fail_at;    /* the how manieth call fails, 0: none */
	int calls;      /* so far */
	int open;       /* objects that have not been closed */
	int error;      /* of the call that fails */
};

extern struct fake fake; /* what verbs_calls_load of the fake gives access to */

/* Where the types of GIDs are; made once a test, removed by the second. */
void fake_make_sysfs(void);
void fake_remove_sysfs(void);
