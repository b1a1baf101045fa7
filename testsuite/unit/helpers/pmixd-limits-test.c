/* SPDX-License-Identifier: BSD-3-Clause */
/* The bounds of lists of pmi2x-pmixd that a client makes longer. */
#include "unit.h"

#include <stdio.h>

#include "helpers/pmixd/upcalls.h"
#include "server-stand-ins.h"

static unsigned lines, entered, questions;
static int fetched;          /* status of the last answer to an agent */

/* ---- in place of the other files, and of libpmix ---- */

static void take_line(void *arg, enum log_level level, const char *text)
{
	lines++;
	assert_non_null(strstr(text, "which is the limit"));
}

int64_t server_now(void)
{
	return 0;
}

int64_t server_deadline(uint32_t ms)
{
	return SERVER_NEVER;
}

struct job *server_job(const struct server *s, uint32_t number)
{
	return &job;
}

int server_enter(struct server *s, struct job *j, struct event *e)
{
	entered++;
	return 0;
}

int server_ask(struct server *s, struct job *j, struct event *e)
{
	return 0;
}

int64_t server_calls_due(const struct server *s)
{
	return SERVER_NEVER;
}

void server_expire_calls(struct server *s, int64_t at)
{
}

int64_t server_sessions_due(const struct server *s)
{
	return SERVER_NEVER;
}

int server_expire_sessions(struct server *s, int64_t at)
{
	return 0;
}

pmix_status_t server_count_clients(struct server *s, const char *nspace, uint32_t count)
{
	return PMIX_SUCCESS;
}

void upcalls_committed(pmix_status_t status, char *data, size_t len, void *arg)
{
}

void library_pass(const struct library *l, const char *nspace)
{
}

int link_send(struct link *l, const struct pmix_msg *m)
{
	fetched = m->status;
	return 0;
}

/* ---- the limits ---- */

/* A server, whose lists last as long as the program. */
static struct server *serve(void)
{
	static const struct log_hook log = { .line = take_line };
	static struct server servers[4];
	static unsigned used;

	lines = answers = entered = 0;
	servers[used].log = &log;
	return &servers[used++];
}

/* Rank 0 connects with the process of this rank elsewhere. */
static void cross(struct server *s, uint32_t rank)
{
	pmix_proc_t procs[2] = { { .nspace = NSPACE }, { .nspace = "other", .rank = rank } };
	struct event *e = event_create(EVENT_CONNECT, &procs[0]);

	e->ranks = calloc(2, sizeof(*e->ranks));
	e->data = malloc(sizeof(procs));
	memcpy(e->data, procs, sizeof(procs));
	e->len = sizeof(procs);
	assert_int_equal(server_xns_enter(s, &job, e), 0);
	event_free(e);
}

TEST(sets_that_connect_are_bounded)
{
	struct server *s = serve();

	for (uint32_t r = 0; r < MEMBER_SETS_MAX; r++)
		cross(s, r);
	assert_int_equal(entered, MEMBER_SETS_MAX);
	assert_int_equal(answers, 0);
	cross(s, MEMBER_SETS_MAX);
	cross(s, MEMBER_SETS_MAX + 1);
	assert_int_equal(entered, MEMBER_SETS_MAX);
	assert_int_equal(answers, 2);
	assert_int_equal(answer, PMIX_ERR_OUT_OF_RESOURCE);
	assert_int_equal(lines, 1);
	cross(s, 7); /* these have connected before */
	assert_int_equal(entered, MEMBER_SETS_MAX + 1);
}

TEST(namespaces_that_are_asked_about_are_bounded)
{
	struct server *s = serve();
	char nspace[32];

	for (int i = 0; i < REMOTE_NSPACES_MAX; i++) {
		snprintf(nspace, sizeof(nspace), "elsewhere.%d", i);
		assert_int_equal(server_keep_remote_nspace(s, nspace), 0);
	}
	assert_int_equal(server_keep_remote_nspace(s, "one more"), -ENOSPC);
	assert_int_equal(server_keep_remote_nspace(s, "elsewhere.0"), 0);
	assert_int_equal(lines, 1);
	}

/* Data that a connection has brought replaces older data of that namespace. */
static int bring(struct server *s, const char *nspace, size_t len)
{
	struct xns_connect x = { .with_data = true };
	struct call c = { .xns_connect = &x };
	char *bytes = calloc(1, len);
	struct names_item item = {
		.value = bytes, .len = len, .from.nspace = nspace,
	};

	server_xns_found(s, &c, 0, &(struct names_answer){ .items = &item, .count = 1 });
	free(bytes);
	return answer;
}

TEST(data_of_other_namespaces_is_bounded)
{
	struct server *s = serve();

	assert_int_equal(bring(s, "a", REMOTE_BYTES_MAX / 2), 0);
	assert_int_equal(bring(s, "b", REMOTE_BYTES_MAX / 2), 0);
	assert_int_equal(bring(s, "c", 2), PMIX_ERR_OUT_OF_RESOURCE);
	assert_int_equal(bring(s, "a", REMOTE_BYTES_MAX / 4), 0);
	assert_int_equal(bring(s, "c", 2), 0);
	}

static pmix_status_t ask_library(const pmix_proc_t *proc, pmix_dmodex_response_fn_t done,
				 void *arg)
{
	questions++;
	event_free(arg);
	return PMIX_SUCCESS;
}

TEST(requests_of_other_nodes_are_bounded)
{
	static const uint32_t one = 1, zero, *const ranks[] = { &zero };
	const struct library library = { .server_dmodex_request = ask_library };
	const struct pmix_msg m = { .type = PMIX_MSG_FETCH };
	struct server *s = serve();

	assert_int_equal(layout_create(&job.nspace.layout, 1, 1, &one, ranks), 0);
	s->library = &library;
	for (uint32_t i = 0; i < FETCHES_MAX; i++)
		assert_int_equal(server_fetch(s, &m), 0);
	assert_int_equal(questions, FETCHES_MAX);
	assert_int_equal(fetched, 0);
	assert_int_equal(server_fetch(s, &m), 0);
	assert_int_equal(fetched, -ENOSPC);
	assert_int_equal(questions, FETCHES_MAX);
	server_forget_fetches(s, 0);
	assert_int_equal(s->nfetches, 0);
	layout_destroy(job.nspace.layout);
}
