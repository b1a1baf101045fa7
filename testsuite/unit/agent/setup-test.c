/* SPDX-License-Identifier: BSD-3-Clause */
/* The setup of an agent, and its messages with the process that started it. */
#include "unit.h"

#include <errno.h>

#include "agent/setup.h"
#include "libconfine/host_msg.h"

#define NODES 3

static struct layout *make_layout(void)
{
	static const uint32_t a[] = { 0, 3, 6 }, b[] = { 1, 2 }, c[] = { 7, 5, 4 };
	const uint32_t counts[NODES] = { 3, 2, 3 };
	const uint32_t *ranks[NODES] = { a, b, c };
	struct layout *l;

	assert_int_equal(layout_create(&l, NODES, 8, counts, ranks), 0);
	return l;
}

static void fill(struct setup *s, const struct layout *layout)
{
	static const char *const names[NODES] = { "n1", "n2", "n3" };
	static const uint32_t sizes[] = { 5, 3 };
	static struct known_address known = { .node_id = 2 };

	memset(s, 0, sizeof(*s));
	agent_options_init(&s->options);
	memset(&s->options.secret, 7, sizeof(s->options.secret));
	s->options.drain_ms = 1234;
	s->options.no_kill = true;
	s->options.tell_unspoken = true;
	s->options.wrapper = 2;
	s->options.closed_by = "csh";
	s->options.closed_slot = 3;
	s->options.no_pmix = "node n2 has no libpmix";
	s->options.spool_dir = "/var/spool/slurmd-%n";
	s->options.spool_max = 92;
	s->options.settings = "Pmi2xTreeWidth=4 Pmi2xPorts=1-2";
	s->options.prefork_ns = -5;
	s->options.wanted_ns = 6;
	s->port = 4711;
	known.addr.ss_family = AF_INET6;
	s->known = &known;
	s->nknown = 1;
	s->step = (struct pmi_step){
		.jobid = "7.0", .layout = layout, .position = 1,
		.universe_size = 9, .app_sizes = sizes, .napps = 2,
		.spawned = true, .spawner_jobid = "6.1", .preput = "\0x",
		.preput_len = 2, .build = "b", .node_names = names,
	};
}

static void pack(struct buf *b)
{
	struct layout *layout = make_layout();
	struct setup s;

	fill(&s, layout);
	buf_init(b, SETUP_BYTES_MAX);
	assert_int_equal(setup_pack(b, &s), 0);
	layout_destroy(layout);
}

TEST(all_of_it_arrives)
{
	struct layout *layout = make_layout();
	const struct secret secret = { { 7 } };
	struct setup s;
	struct buf b;
	uint32_t n, want;

	pack(&b);
	assert_int_equal(setup_unpack(&s, b.data, b.len), 0);
	assert_int_equal(s.options.secret.bytes[31], 7);
	assert_int_equal(s.options.drain_ms, 1234);
	assert_true(s.options.no_kill);
	assert_true(s.options.tell_unspoken);
	assert_int_equal(s.options.wrapper, 2);
	assert_string_equal(s.options.closed_by, "csh");
	assert_int_equal(s.options.closed_slot, 3);
	assert_string_equal(s.options.no_pmix, "node n2 has no libpmix");
	assert_string_equal(s.options.spool_dir, "/var/spool/slurmd-%n");
	assert_int_equal(s.options.spool_max, 92);
	assert_string_equal(s.options.settings, "Pmi2xTreeWidth=4 Pmi2xPorts=1-2");
	assert_int_equal(s.options.prefork_ns, -5);
	assert_int_equal(s.options.wanted_ns, 6);
	assert_int_equal(s.port, 4711);
	assert_int_equal(s.nknown, 1);
	assert_int_equal(s.known[0].node_id, 2);
	assert_int_equal(s.known[0].addr.ss_family, AF_INET6);
	assert_string_equal(s.step.jobid, "7.0");
	assert_string_equal(s.step.spawner_jobid, "6.1");
	assert_null(s.step.reserved_ports);
	assert_int_equal(s.step.app_sizes[1], 3);
	assert_null(s.step.app_numbers);
	assert_memory_equal(s.step.preput, "\0x", 2);
	assert_string_equal(s.step.node_names[2], "n3");
	for (uint32_t p = 0; p < NODES; p++) {
		const uint32_t *got = layout_ranks_at(s.step.layout, p, &n);
		const uint32_t *put = layout_ranks_at(layout, p, &want);

		assert_int_equal(n, want);
		assert_memory_equal(got, put, n * sizeof(*got));
	}
	assert_int_equal(sizeof(secret), sizeof(s.options.secret));
	assert_null(memmem(b.data, b.len, &s.options.secret, sizeof(secret)));
	setup_free(&s);
	buf_free(&b);
	layout_destroy(layout);
}

TEST(setup_that_is_cut_or_too_long_is_rejected)
{
	struct setup s;
	struct buf b;

	pack(&b);
	for (size_t len = 0; len < b.len; len++) {
		char *cut = malloc(len + 1);

		memcpy(cut, b.data, len);
		assert_true(setup_unpack(&s, cut, len) < 0);
		free(cut);
	}
	assert_int_equal(buf_append(&b, "x", 1), 0);
	assert_int_equal(setup_unpack(&s, b.data, b.len), -EPROTO);
	buf_free(&b);
}

TEST(another_version_is_known_as_one)
{
	struct setup s;
	struct buf b;

	pack(&b);
	b.data[4]++;
	assert_int_equal(setup_unpack(&s, b.data, b.len), -EPROTONOSUPPORT);
	buf_free(&b);
}

TEST(a_message_arrives)
{
	const struct host_msg m = { HOST_CONNECT_BACK_SENT, 5, -ENOENT, "abc", 3 };
	struct host_msg got;
	char room[HOST_MSG_MAX];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	assert_int_equal(host_msg_pack(&b, &m), 0);
	assert_int_equal(host_msg_unpack(&got, b.data, b.len), 0);
	assert_int_equal(got.type, HOST_CONNECT_BACK_SENT);
	assert_int_equal(got.number, 5);
	assert_int_equal(got.code, -ENOENT);
	assert_memory_equal(got.data, "abc", got.len);
	for (size_t len = 0; len < b.len; len++)
		assert_int_equal(host_msg_unpack(&got, b.data, len), -EPROTO);
	b.data[0] = HOST_TYPES;
	assert_int_equal(host_msg_unpack(&got, b.data, b.len), -EPROTO);
}
