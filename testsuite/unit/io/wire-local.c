/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections of the wire reference for processes of one node: setup and PMIx. */
#include "unit.h"

#include <stdio.h>

#include "agent/setup.h"
#include "libpmi/pmix_msg.h"
#include "wire-lines.h"

static struct sockaddr_storage address(sa_family_t family, unsigned char filled)
{
	struct sockaddr_storage addr;

	memset(&addr, filled, sizeof(addr));
	addr.ss_family = family;
	return addr;
}

/* Each field differs from its neighbours. */
static struct agent_options options(void)
{
	return (struct agent_options){
		.secret = { "0123456789abcdef0123456789abcde" },
		.bind = address(AF_INET, 1), .addresses_told = true,
		.port_first = 2, .port_last = 3, .port_seed = 1ull << 40,
		.launcher = address(AF_INET6, 4), .region_size = 1ull << 41,
		.buffer_limit = 1ull << 42, .handshake_ms = 5, .connect_back_ms = 6,
		.connect_ms = 7, .absent_ms = 8, .drain_ms = 9, .stays = true,
		.stall_ms = 10, .collective_ms = 11, .no_kill = true, .no_srun = true, .torch = true,
		.wrapper = 25, .closed_by = "csh", .closed_slot = 12, .trace = true,
		.launch_ns = -13, .prefork_ns = 14, .ready_ns = 15, .wanted_ns = 16,
		.exits_known = true, .settings = "Pmi2xTreeWidth=4",
		.spool_dir = "/var/spool/slurmd", .spool_max = 17,
		.no_pmix = "no libpmix", .debug = true, .dead_peer_ms = 18,
		.connect_back_uid = 19, .protocol = 20, .torch_ports = { 26, 27 },
	};
}

static void setup_line(struct buf *out)
{
	static const uint32_t a[] = { 0, 3, 6 }, b[] = { 1, 2 }, c[] = { 7, 5, 4 };
	static const uint32_t counts[] = { 3, 2, 3 }, *const ranks[] = { a, b, c };
	static const uint32_t sizes[] = { 5, 3 };
	static const char *const names[] = { "n1", "n2", "n3" };
	struct known_address known = { 2, address(AF_INET6, 21) };
	struct setup s = { .options = options(), .port = 4711, .known = &known,
			   .nknown = 1 };
	struct layout *layout;
	struct buf bytes;

	assert_int_equal(layout_create(&layout, 3, 8, counts, (const uint32_t **)ranks),
			 0);
	s.step = (struct pmi_step){
		.jobid = "7.0", .layout = layout, .position = 1, .tree_width = 22,
		.piece = 23, .universe_size = 24, .app_sizes = sizes, .napps = 2,
		.spawned = true, .spawner_jobid = "6.1", .reserved_ports = "12000",
		.preput = "\0x", .preput_len = 2, .build = "b", .node_names = names,
	};
	buf_init(&bytes, LINE_MAX_BYTES);
	assert_int_equal(setup_pack(&bytes, &s), 0);
	buf_line(out, "setup", &bytes);
	buf_free(&bytes);
	layout_destroy(layout);
}

static void pmix_lines(struct buf *out)
{
	static const uint32_t members[] = { 2, 5 };
	const struct pmix_entry entry = { 5, 4, "da\0t" };
	struct buf b;
	char name[40];

	buf_init(&b, LINE_MAX_BYTES);
	for (unsigned type = 1; type < PMIX_MSG_TYPES; type++) {
		const struct pmix_msg m = {
			.type = type, .nspace = 1, .id = 1ull << 40, .rank = 7,
			.status = -5, .number = 9, .op = PMIX_OP_CONNECT,
			.text = "why", .text_len = 3, .data = "data", .len = 4,
		};

		assert_int_equal(pmix_msg_pack(&b, &m), 0);
		snprintf(name, sizeof(name), "pmix-%u", type);
		buf_line(out, name, &b);
	}
	assert_int_equal(pmix_members_pack(&b, members, 2), 0);
	buf_line(out, "members", &b);
	assert_int_equal(pmix_entry_pack(&b, &entry), 0);
	buf_line(out, "entry", &b);
	buf_free(&b);
}

void local_sections(struct buf *out)
{
	section(out, "setup", SETUP_VERSION);
	setup_line(out);
	section(out, "pmix", PMIX_MSG_VERSION);
	pmix_lines(out);
}
