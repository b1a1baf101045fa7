/* SPDX-License-Identifier: BSD-3-Clause */
/* srun's services for one step; the test plays srun, the nodes, and a parent's srun. */
#pragma once

#include "unit.h"

#include "libpmi/step_services.h"

#define SPAWNS_SEEN 8

/* Requests of the services to srun, as counted by the test. */
struct seen {
	struct step_services *services;
	struct control_msg reply; /* the last one; its body has ended, */
	char body[256];           /* but is here */
	size_t body_len;
	void *reply_link;
	unsigned replies;
	uint32_t tokens[SPAWNS_SEEN]; /* of spawns and forwarded requests */
	unsigned spawns, forwards;
	int spawn_rc;
	unsigned aborts, reports, gave_ups, readies;
	uint32_t abort_rank;
	uint32_t started; /* the position whose ranks were started */
	char text[64];
};

extern struct seen seen;
extern int link_a, link_b; /* their addresses stand for links */

/* Tests that begin with nothing seen: of a step, or one that a parent has spawned. */
#define STEP_TEST(test) TEST_WITH(test, begin_test, end_test)
#define PARENT_TEST(test) TEST_WITH(test, begin_parent_test, end_test)
int begin_test(void **state);
int begin_parent_test(void **state);
int end_test(void **state);

int receive(void *link, const struct control_msg *msg);
/* Send a name request and return the code of its reply. */
int ask(enum control_type type, const char *name, const char *port);
/* Ask over this link to spawn two ranks, by a request of this id. */
void request_spawn(void *link, uint32_t id);
