/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks and neighbours that send nearly right bytes. The sanitizers must stay silent, and
 * nobody may be answered after a close.
 */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "libcoll/coll.h"
#include "libshm/image_layout.h"

#define ROUNDS 300

/* A fixed sequence, so that a failure can be repeated. */
struct dice {
	uint32_t state;
};

static uint32_t throw(struct dice *d, uint32_t sides)
{
	d->state = d->state * 1664525u + 1013904223u;
	return (d->state >> 8) % sides;
}

static const char *const BODIES[] = {
	"cmd=kvs-put;key=a;value=b;",
	"cmd=kvs-get;thrid=0x12;key=a;",
	"cmd=kvs-fence;",
	"cmd=ring;ring-count=1;ring-left=a;ring-right=b;",
	"cmd=info-putnodeattr;key=a;value=b;",
	"cmd=info-getnodeattr;key=b;wait=TRUE;",
	"cmd=info-getjobattr;key=universeSize;",
	"cmd=name-publish;name=a;port=b;",
	"cmd=name-lookup;name=a;",
	"cmd=spawn;ncmds=2;preputcount=1;ppkey0=a;ppval0=b;subcmd=x;"
	"maxprocs=2;argc=1;argv0=y;infokeycount=1;infokey0=k;infoval0=v;"
	"subcmd=z;maxprocs=1;argc=0;",
	"cmd=pmi2x-put;records=\1\1\1\1\1\1\1\1a\1b\1;",
	"cmd=pmi2x-allgather;value=abc;stride=8;done=1,2;",
	"cmd=pmi2x-read;offset=64;length=16;",
	"cmd=finalize;",
};

static const char *const LINES[] = {
	"cmd=put kvsname=a key=b value=c\n",
	"cmd=get kvsname=a key=b\n",
	"cmd=barrier_in\n",
	"cmd=publish_name service=a port=b\n",
	"mcmd=spawn\nnprocs=2\nexecname=a\ntotspawns=2\nspawnssofar=1\n"
	"arg1=x\nargcnt=1\npreput_num=0\ninfo_num=1\ninfo_key_0=a\n"
	"info_val_0=b\nendcmd\n",
	"cmd=finalize\n",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void hurt(struct dice *d, char *bytes, size_t len)
{
	static const char nasty[] = "\0;=\n -09\377";

	for (uint32_t n = throw(d, 3); n > 0; n--)
		bytes[throw(d, len)] = nasty[throw(d, sizeof(nasty) - 1)];
}

static void send_hurt_pmi2(struct net *n, struct dice *d, uint32_t rank)
{
	const char *body = BODIES[throw(d, COUNT(BODIES))];
	char text[1000];
	int len = snprintf(text, sizeof(text), "%-6zu%s", strlen(body), body);

	/* The length mostly stays right, or nothing else would be seen. */
	if (throw(d, 10))
		hurt(d, text + PMI2_HEADER_LEN, len - PMI2_HEADER_LEN);
	else
		hurt(d, text, len);
	net_input(n, rank, text, len);
}

static void send_hurt_pmi1(struct net *n, struct dice *d, uint32_t rank)
{
	const char *line = LINES[throw(d, COUNT(LINES))];
	char text[1000];
	int len = snprintf(text, sizeof(text), "%s", line);

	hurt(d, text + 4, len - 5);
	net_input(n, rank, text, len);
}

TEST(ranks_that_send_nearly_right_messages)
{
	struct dice d = {1};

	for (int round = 0; round < ROUNDS; round++) {
		const struct net_options o = {.heap = round % 2};
		struct net *n = net_create(&o);

		for (uint32_t r = 0; r < NET_RANKS; r++) {
			if (r % 2)
				net_init1(n, r);
			else
				net_init_ext(n, r, 1);
		}
		for (int i = 0; i < 100; i++) {
			uint32_t rank = throw(&d, NET_RANKS);

			if (rank % 2)
				send_hurt_pmi1(n, &d, rank);
			else
				send_hurt_pmi2(n, &d, rank);
			net_run(n);
		}
		unit_end(n);
	}
}

static void enter_something(struct net *n, struct dice *d, uint32_t rank)
{
	switch (throw(d, 3)) {
	case 0:
		net_input(n, rank, "14    cmd=kvs-fence;", 20);
		break;
	case 1:
		net_input(n, rank, "28    cmd=pmi2x-allgather;value=a;", 34);
		break;
	default:
		net_input(n, rank,
			  "47    cmd=ring;ring-count=1;ring-left=a;ring-right=b;",
			  53);
	}
}

/* Change the next frame on its way, and do what a host does on an error. */
static void deliver_hurt(struct net *n, struct dice *d)
{
	struct net_frame f = n->queue[n->head++];
	struct net_node *to = &n->nodes[f.to];
	struct net_frame copy = f;

	copy.bytes = payload_copy(f.bytes->data, f.bytes->len);
	hurt(d, (char *)copy.bytes->data, copy.bytes->len);
	if (!to->link_lost && net_node_input(to, &copy) < 0) {
		to->link_lost = true;
		pmi_server_link_lost(to->server, f.from, false, "it sent garbage");
	}
	payload_unref(copy.bytes);
	payload_unref(f.bytes);
}

TEST(neighbours_that_send_nearly_right_frames)
{
	struct dice d = {2};
	uint32_t broken = 0;

	for (int round = 0; round < ROUNDS; round++) {
		const struct net_options o = {.heap = round % 2,
					      .no_launcher = true};
		struct net *n = net_create(&o);

		for (uint32_t r = 0; r < NET_RANKS; r++)
			net_init_ext(n, r, 1);
		for (int i = 0; i < 60; i++) {
			enter_something(n, &d, throw(&d, NET_RANKS));
			while (n->head < n->tail)
				deliver_hurt(n, &d);
			n->head = 0;
			n->tail = 0;
		}
		for (uint32_t i = 0; i < NET_NODES; i++)
			broken += n->nodes[i].link_lost;
		unit_end(n);
	}
	assert_in_range(broken, 1, ROUNDS * NET_NODES - 1);
}

/* ---- claims ---- */

#define REGION ((size_t)256 << 20)

/* Bytes of memory behind the results region of node 2, where rank 5 is. */
static uint64_t committed(const struct net *n)
{
	struct stat st;

	assert_int_equal(fstat(region_writer_fd(n->nodes[2].region), &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* The node's parent sends a message; returns the engine's answer. */
static int from_parent(struct net *n, const struct coll_msg *msg,
		       const void *body, size_t len)
{
	struct net_frame f = { .from = 0, .to = 2 };
	struct buf b;
	int rc;

	buf_init(&b, SIZE_MAX);
	assert_int_equal(coll_msg_pack(&b, msg), 0);
	f.head_len = b.len;
	assert_int_equal(buf_append(&b, body, len), 0);
	f.bytes = payload_copy(b.data, b.len);
	rc = net_node_input(&n->nodes[2], &f);
	payload_unref(f.bytes);
	buf_free(&b);
	return rc;
}

static struct net *step_with_room(void)
{
	const struct net_options o = { .region_size = REGION };
	struct net *n = net_create(&o);

	net_init_ext(n, 5, 1);
	return n;
}

TEST(a_result_costs_what_has_come_of_it)
{
	struct net *n = step_with_room();
	char *piece = calloc(1, 2 * COLL_PIECE);
	struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .kind = COLL_FENCE, .size = REGION / 2,
	};
	uint64_t before = committed(n);

	assert_null(net_pmi2(n, 5, "cmd=kvs-fence;"));
	assert_int_equal(from_parent(n, &msg, piece, COLL_PIECE), 0);
	msg.type = COLL_MSG_REST;
	assert_int_equal(from_parent(n, &msg, piece, COLL_PIECE), 0);
	assert_in_range(committed(n) - before, 2 * COLL_PIECE, 4 * COLL_PIECE);
	/* No message is longer than those into which results are cut. */
	assert_true(from_parent(n, &msg, piece, COLL_PIECE + 1) < 0);
	unit_end(n);
	free(piece);
}

/* A gather of as many empty values as it likes to say: a header, no more. */
TEST(a_gather_has_a_value_of_each_rank)
{
	struct net *n = step_with_room();
	struct image_header h = {
		.magic = IMAGE_MAGIC, .byte_order = 0x01020304,
		.version = IMAGE_VERSION, .kind = IMAGE_GATHER,
		.length = sizeof(h), .count = 200000,
	};
	const struct coll_msg msg = {
		.type = COLL_MSG_DOWN, .kind = COLL_GATHER, .size = sizeof(h),
	};
	uint64_t before = committed(n);
	const char *answer;

	h.checksum = image_checksum(&h, sizeof(h));
	assert_null(net_pmi2(n, 5,
			     "cmd=pmi2x-allgather;value=a;stride=1024;"));
	assert_int_equal(from_parent(n, &msg, &h, sizeof(h)), 0);
	answer = net_read(n, 5);
	assert_non_null(answer);
	assert_non_null(strstr(answer, "malformed data"));
	assert_int_equal(committed(n), before);
}

#define LIMIT 8192 /* bytes that node 0 may hold */

/* "COMMAND;value=vvv...;" with `len` letters v. */
static const char *with_value(const char *command, size_t len)
{
	static char text[LIMIT];
	int n = snprintf(text, sizeof(text), "%s;value=", command);

	memset(text + n, 'v', len);
	strcpy(text + n + len, ";");
	return text;
}

static struct net *net_within(struct budget *b)
{
	const struct net_options o = { .budget = b };
	struct net *n;

	budget_init(b, LIMIT, "Pmi2xBufferLimit", NULL);
	n = net_create(&o);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_init_ext(n, r, 1);
	return n;
}

TEST(puts_end_at_the_budget_and_a_fence_frees_it)
{
	struct budget b;
	struct net *n = net_within(&b);
	const char *answer = "rc=0;";
	int puts = 0;

	for (; strstr(answer, "rc=0;") && puts < 20; puts++)
		answer = net_pmi2(n, 0, with_value("cmd=kvs-put;key=k", 1000));
	assert_in_range(puts, 3, 8);
	assert_non_null(strstr(answer, "Pmi2xBufferLimit"));
	assert_true(b.used <= LIMIT);
	for (uint32_t r = 0; r < NET_RANKS; r++)
		net_pmi2(n, r, "cmd=kvs-fence;");
	net_forget(n);
	answer = net_pmi2(n, 5, "cmd=kvs-get;key=k;");
	assert_non_null(strstr(answer, "found=TRUE"));
	answer = net_pmi2(n, 0, with_value("cmd=kvs-put;key=k", 1000));
	assert_non_null(strstr(answer, "rc=0;"));
	unit_end(n);
	assert_int_equal(b.used, 0);
}

/* The rank has missed a collective that others wait in, which fails by its name. */
TEST(a_gather_over_the_budget_fails_by_name)
{
	struct budget b;
	struct net *n = net_within(&b);

	net_pmi2(n, 5, "cmd=pmi2x-allgather;value=a;stride=8;");
	net_pmi2(n, 3, with_value("cmd=kvs-put;key=k", 3000));
	net_pmi2(n, 0, with_value("cmd=pmi2x-allgather;stride=8", 3000));
	assert_non_null(strstr(net_read(n, 5), "rank 0 (node n0)"));
	unit_end(n);
	assert_int_equal(b.used, 0);
}
