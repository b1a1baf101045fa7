/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agents and who serves the PMIx clients of their nodes: here the test itself, at the
 * other end of each agent's descriptor.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/pmix_nspace.h"

#define NODES 3
#define BYTES_MAX (64u << 20)
#define BIG (3u << 20) /* bytes of a rank: more than a socket holds */

static int ours[NODES], theirs[NODES]; /* ends of the pairs */
static int next_agent;                 /* agents start one after another */

/* The agent of the next node, with its end. */
static int run(int setup_fd, int host_fd, const struct agent_fds *fds)
{
	struct agent_fds with = *fds;

	with.pmix = theirs[__atomic_fetch_add(&next_agent, 1, __ATOMIC_SEQ_CST)];
	return cluster_run_agent(setup_fd, host_fd, &with);
}

/* ---- speaking ---- */

static void write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		assert_true(n > 0);
		data += n;
		len -= n;
	}
}

static void say(uint32_t node, const struct pmix_msg *m)
{
	struct buf b;

	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_msg_pack(&b, m), 0);
	write_all(ours[node], b.data, b.len);
	buf_free(&b);
}

/* The next message, in `b`. */
static void hear_any(uint32_t node, struct pmix_msg *m, struct buf *b)
{
	int64_t size;

	buf_init(b, BYTES_MAX);
	while (!(size = pmix_msg_unpack(m, b->data, b->len))) {
		size_t want = b->len < PMIX_MSG_LENGTH_BYTES ?
				      PMIX_MSG_LENGTH_BYTES :
				      (size_t)pmix_msg_size(b->data);
		ssize_t n;

		assert_int_equal(buf_reserve(b, want - b->len), 0);
		n = read(ours[node], b->data + b->len, want - b->len);
		if (n <= 0)
			fail_msg("the agent of node n%u has closed", node);
		b->len += n;
	}
	assert_int_equal(size, b->len);
}

/* But that ranks use PMI, too. */
static void hear(uint32_t node, struct pmix_msg *m, struct buf *b)
{
	hear_any(node, m, b);
	while (m->type == PMIX_MSG_PMI) {
		buf_free(b);
		hear_any(node, m, b);
	}
}

static void say_rank(uint32_t node, enum pmix_msg_type type)
{
	say(node, &(struct pmix_msg){ .type = type, .rank = node });
}

/* The rank of a node enters a fence of all with `len` bytes. */
static void enter(uint32_t node, uint64_t id, size_t len)
{
	struct pmix_msg m = {
		.type = PMIX_MSG_ENTER, .op = PMIX_OP_FENCE, .id = id,
		.rank = PMIX_NO_RANK,
	};
	char *bytes = malloc(len);
	struct buf b;

	memset(bytes, 'a' + (int)node, len);
	buf_init(&b, BYTES_MAX);
	assert_int_equal(pmix_members_pack(&b, NULL, 0), 0);
	assert_int_equal(pmix_entry_pack(&b, &(struct pmix_entry){
				 node, len, bytes }), 0);
	m.data = b.data;
	m.len = b.len;
	say(node, &m);
	buf_free(&b);
	free(bytes);
}

static void expect_ended(uint32_t node, uint64_t id, size_t len)
{
	struct pmix_entry e;
	struct pmix_msg m;
	struct cursor c;
	struct buf b;

	hear(node, &m, &b);
	assert_int_equal(m.type, PMIX_MSG_ENDED);
	assert_int_equal(m.id, id);
	assert_int_equal(m.status, 0);
	cursor_init(&c, m.data, m.len);
	for (uint32_t r = 0; r < NODES; r++) {
		assert_true(pmix_entry_next(&c, &e));
		assert_int_equal(e.rank, r);
		assert_int_equal(e.len, len);
		assert_int_equal(((const char *)e.bytes)[len - 1], 'a' + (int)r);
	}
	buf_free(&b);
}

static void expect_failed(uint32_t node, uint64_t id, const char *why)
{
	char text[PMIX_MSG_TEXT_MAX + 1];
	struct pmix_msg m;
	struct buf b;

	hear(node, &m, &b);
	assert_int_equal(m.type, PMIX_MSG_ENDED);
	assert_int_equal(m.id, id);
	assert_true(m.status < 0);
	snprintf(text, sizeof(text), "%.*s", (int)m.text_len, m.text);
	if (!strstr(text, why))
		fail_msg("\"%s\" is not in \"%s\"", why, text);
	buf_free(&b);
}

/* ---- the step ---- */

/* Hello, and the namespace comes back. */
static void greet(uint32_t node)
{
	struct pmix_nspace ns;
	struct pmix_msg m;
	struct buf b;

	say(node, &(struct pmix_msg){ .type = PMIX_MSG_HELLO,
				      .number = PMIX_MSG_VERSION });
	hear(node, &m, &b);
	assert_int_equal(m.type, PMIX_MSG_NSPACE);
	assert_int_equal(pmix_nspace_unpack(&ns, m.data, m.len), 0);
	assert_string_equal(ns.name, "pmi2x.7.0");
	assert_int_equal(ns.position, node);
	assert_int_equal(ns.uid, getuid());
	pmix_nspace_free(&ns);
	buf_free(&b);
}

static void await_agent(uint32_t count)
{
	while ((uint32_t)__atomic_load_n(&next_agent, __ATOMIC_SEQ_CST) < count)
		sched_yield();
}

static void close_ours(void *ours_of_all)
{
	const int *fds = ours_of_all;

	for (uint32_t i = 0; i < NODES; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* A rank has connected, so an agent is started for it: here a byte of PMI does it. */
static struct cluster *open_step(void)
{
	struct cluster *c;

	unit_at_end(close_ours, ours); /* after the cluster */
	c = cluster_new(NODES);
	next_agent = 0;
	c->run = run;
	c->exits = true;
	c->exit.status = W_EXITCODE(5, 0);
	for (uint32_t i = 0; i < NODES; i++) {
		int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
					    pair), 0);
		ours[i] = pair[0];
		theirs[i] = pair[1];
		cluster_start(c, i);
		rank_init(c, i);
		await_agent(i + 1);
	}
	for (uint32_t i = 0; i < NODES; i++) {
		greet(i);
		say_rank(i, PMIX_MSG_READY);
		say_rank(i, PMIX_MSG_CONNECTED);
	}
	return c;
}

#define STEP_TEST(name) TEST_ON(name, struct cluster *c, open_step())

static void finalize(struct cluster *c)
{
	for (uint32_t i = 0; i < NODES; i++) {
		say_rank(i, PMIX_MSG_FINALIZED);
		rank_say(c, i, "cmd=finalize");
	}
}

/* ---- tests ---- */

STEP_TEST(fences_end_on_every_node)
{
	for (uint64_t id = 1; id < 4; id++) {
		for (uint32_t i = 0; i < NODES; i++)
			enter(i, id, 100);
		for (uint32_t i = 0; i < NODES; i++)
			expect_ended(i, id, 100);
	}
	finalize(c);
}

STEP_TEST(large_data_arrive_whole_beside_pmi_barriers)
{
	for (uint32_t i = 0; i < NODES; i++)
		enter(i, 1, BIG);
	for (uint32_t i = 0; i < NODES; i++)
		rank_say(c, i, "cmd=barrier_in");
	for (uint32_t i = 0; i < NODES; i++)
		rank_expect(c, i, "cmd=barrier_out");
	for (uint32_t i = 0; i < NODES; i++)
		expect_ended(i, 1, BIG);
	finalize(c);
}

STEP_TEST(its_death_is_named_on_every_node)
{
	enter(0, 1, 10);
	enter(1, 1, 10);
	close(ours[2]);
	ours[2] = -1;
	expect_failed(0, 1, "PMIx server of node n2 died");
	expect_failed(1, 1, "PMIx server of node n2 died");
	enter(0, 2, 10);
	expect_failed(0, 2, "PMIx server of node n2 died");
}

STEP_TEST(half_a_message_is_no_message)
{
	enter(0, 1, 10);
	write_all(ours[2], "\100\0\0\0\1\0", 6);
	close(ours[2]);
	ours[2] = -1;
	expect_failed(0, 1, "PMIx server of node n2 died");
}

STEP_TEST(invalid_message_of_pmixd_closes_its_connection)
{
	ssize_t n;
	char byte;

	enter(0, 1, 10);
	write_all(ours[2], "\377\377\377\377", 4);
	expect_failed(0, 1, "PMIx server of node n2 sent an invalid message; its connection is closed");
	while ((n = read(ours[2], &byte, 1)) > 0)
		; /* what was sent before */
	assert_int_equal(n, 0);
}

STEP_TEST(a_rank_that_ends_is_named)
{
	for (uint32_t i = 0; i < NODES; i++)
		rank_say(c, i, "cmd=finalize");
	enter(0, 1, 10);
	rank_close(c, 1);
	expect_failed(0, 1,
		      "rank 1 (node n1) exited with exit code 5 without finalizing PMIx");
}
