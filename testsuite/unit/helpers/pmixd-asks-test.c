/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of clients that pmi2x-pmixd has not answered: what the agent hears of them. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "helpers/pmixd/server_internal.h"

#define PERIOD 15000 /* ms, of a report after a minute */
#define CLIENTS 3

static int64_t requests[CLIENTS]; /* by descriptor: since when it waits */
static struct client_session sessions[CLIENTS];
static struct job job = { .sessions = sessions, .stall_ms = 60000 };

static struct {
	unsigned times;
	uint32_t ranks[CLIENTS], count; /* of the last message */
} told;

/* ---- in place of the link and the hook in front of libpmix ---- */

int link_send(struct link *l, const struct pmix_msg *m)
{
	uint32_t *ranks;
	struct cursor c;

	assert_int_equal(m->type, PMIX_MSG_ASKS);
	cursor_init(&c, m->data, m->len);
	assert_int_equal(pmix_members_unpack(&c, &ranks, &told.count, CLIENTS), 0);
	assert_int_equal(m->number, told.count);
	if (told.count)
		memcpy(told.ranks, ranks, told.count * sizeof(*ranks));
	free(ranks);
	told.times++;
	return 0;
}

static int64_t asks_since(int fd)
{
	return requests[fd];
}

static const struct server_options options = { .asks_since = asks_since };
static struct server server = { .options = &options, .jobs = &job };

/* ---- the node's clients ---- */

static int open_job(void **state)
{
	static const uint32_t count = CLIENTS, numbers[] = { 0, 1, 2 }, *const ranks = numbers;

	for (int i = 0; i < CLIENTS; i++)
		sessions[i] = (struct client_session){ .open = true, .fd = i };
	memset(requests, 0, sizeof(requests));
	told.times = 0;
	job.look_at = 0;
	job.stall_ms = 60000;
	return layout_create(&job.nspace.layout, 1, CLIENTS, &count, &ranks);
}

static int close_job(void **state)
{
	layout_destroy(job.nspace.layout);
	return 0;
}

static void look(int64_t now)
{
	assert_int_equal(server_asks_due(&server), job.look_at);
	assert_true(job.look_at <= now);
	assert_int_equal(server_look_asks(&server, now), 0);
	assert_int_equal(job.look_at, now + PERIOD);
}

TEST_WITH(request_without_an_answer_is_told_once, open_job, close_job)
{
	requests[1] = 1000;
	look(PERIOD);
	assert_int_equal(told.times, 0);
	look(2 * PERIOD);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.ranks[0], 1);
	look(3 * PERIOD);
	assert_int_equal(told.times, 1);
	requests[1] = 0;
	look(4 * PERIOD);
	assert_int_equal(told.times, 2);
	assert_int_equal(told.count, 0);
}

TEST_WITH(next_request_of_the_same_client_is_told_anew, open_job, close_job)
{
	requests[1] = 1000;
	look(2 * PERIOD);
	requests[1] = 2 * PERIOD + 1;
	look(4 * PERIOD);
	assert_int_equal(told.times, 2);
	assert_int_equal(told.count, 1);
}

TEST_WITH(client_that_has_left_does_not_wait, open_job, close_job)
{
	requests[1] = requests[2] = 1000;
	sessions[1].open = false;
	sessions[2].asked = true;
	look(2 * PERIOD);
	assert_int_equal(told.times, 0);
}

TEST_WITH(nobody_looks_in_vain, open_job, close_job)
{
	job.stall_ms = 0;
	assert_true(server_asks_due(&server) == SERVER_NEVER);
	job.stall_ms = 60000;
	for (int i = 0; i < CLIENTS; i++)
		sessions[i].open = false;
	assert_true(server_asks_due(&server) == SERVER_NEVER);
	assert_int_equal(server_look_asks(&server, 2 * PERIOD), 0);
	assert_int_equal(job.look_at, 0);
}
