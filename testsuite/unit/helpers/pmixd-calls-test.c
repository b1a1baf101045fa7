/* SPDX-License-Identifier: BSD-3-Clause */
/* The bound of calls of pmi2x-pmixd's clients that the agent has not answered. */
#include "unit.h"

#include "helpers/pmixd/names.h"
#include "server-stand-ins.h"

static unsigned lines, sent;
static uint64_t last_id;     /* of what was sent last */

/* ---- in place of the other files, and of libpmix ---- */

static void take_line(void *arg, enum log_level level, const char *text)
{
	lines++;
}

int64_t server_deadline(uint32_t ms)
{
	return ms;
}

int link_send(struct link *l, const struct pmix_msg *m)
{
	sent++;
	last_id = m->id;
	return 0;
}

int link_send_pieces(struct link *l, const struct pmix_msg *m, const struct payload_vec *pieces)
{
	return link_send(l, m);
}

bool server_any_killed(const struct job *j, const uint32_t *slots, uint32_t count)
{
	return false;
}

void server_miss(struct job *j, const uint32_t *slots, uint32_t count)
{
}

int collect_give(struct collect *c, const struct event *e, const uint32_t *slots,
		 uint32_t count, struct pieces *out)
{
	return 0;
}

int collect_give_ranks(struct collect *c, const uint32_t *slots, uint32_t count,
		       struct pieces *out)
{
	return 0;
}

int collect_take(struct collect *c, const struct pmix_msg *m, struct payload *message,
		 char **data, size_t *len)
{
	return 0;
}

bool collect_find(struct collect *c, uint32_t rank, const char *key, const void **data,
		  size_t *len)
{
	return false;
}

int group_give(struct job *j, const struct event *e, const uint32_t *slots, uint32_t count,
	       struct buf *b)
{
	return 0;
}

int group_answer(const struct job *j, const struct callback *callback, const uint32_t *ranks,
		 uint32_t count, const void *data, size_t len)
{
	return 0;
}

bool server_find_remote_proc(struct server *s, const struct event *e, const void **data,
			     size_t *len)
{
	return false;
}

void server_xns_gathered(struct server *s, struct call *c, const struct pmix_msg *m)
{
}

void server_xns_found(struct server *s, const struct call *c, int error,
		      const struct names_answer *a)
{
}

pmix_pdata_t *names_found(const struct library *l, const struct names_answer *a)
{
	return NULL;
}

void names_free_found(const struct library *l, pmix_pdata_t *found, size_t count)
{
}

/* ---- the limit ---- */

/* Rank 0 asks for data of rank 1, which never puts it. */
static void get(struct server *s, uint32_t timeout_ms)
{
	pmix_proc_t proc = { .nspace = NSPACE, .rank = 1 };
	struct event *e = event_create(EVENT_GET, &proc);

	e->timeout_ms = timeout_ms;
	assert_int_equal(server_get(s, &job, e), 0);
	event_free(e);
}

static int fetched(struct server *s, uint64_t id)
{
	return server_fetched(s, &(struct pmix_msg){
		.type = PMIX_MSG_FETCHED, .id = id, .status = -ENOENT });
}

/* Calls that have timed out count until the agent has answered them. */
TEST(calls_without_an_answer_are_bounded)
{
	static const struct log_hook log = { .line = take_line };
	static const uint32_t two = 2, both[] = { 0, 1 }, *const ranks[] = { both };
	struct server s = { .log = &log };

	assert_int_equal(layout_create(&job.nspace.layout, 1, 2, &two, ranks), 0);
	for (uint32_t i = 0; i < CALLS_MAX; i++)
		get(&s, 100);
	assert_int_equal(sent, CALLS_MAX);
	server_expire_calls(&s, 100);
	assert_int_equal(answers, CALLS_MAX);
	for (int i = 0; i < 3; i++)
		get(&s, 0);
	assert_int_equal(sent, CALLS_MAX);
	assert_int_equal(answers, CALLS_MAX + 3);
	assert_int_equal(answer, PMIX_ERR_OUT_OF_RESOURCE);
	assert_int_equal(lines, 1);
	/* An answer makes room for one call. */
	assert_int_equal(fetched(&s, last_id), 0);
	get(&s, 0);
	get(&s, 0);
	assert_int_equal(sent, CALLS_MAX + 1);
	assert_int_equal(answer, PMIX_ERR_OUT_OF_RESOURCE);
	/* An agent that answers twice, or a call that was never made, is invalid. */
	assert_int_equal(fetched(&s, last_id), 0);
	assert_int_equal(fetched(&s, last_id), -EPROTO);
	server_fail_calls(&s, &job);
	assert_int_equal(s.ncalls, 0);
	layout_destroy(job.nspace.layout);
}
