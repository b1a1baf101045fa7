/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads that call a daemon, over real sockets. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "dvm/core/dvm_msg.h"
#include "dvm/node/mesh.h"
#include "libio/protocol.h"
#include "loopback.h"

#define NODE 3

struct bed {
	struct loop *loop;
	struct handshake_self node, head;
	struct pool *pool;
	uint32_t given; /* links to heads, that are the daemon's now */
};

struct caller {
	struct bed *bed;
	struct link *link;
	struct dvm_msg says;
	bool ended;
};

static int on_frame(void *arg, uint32_t node, const struct pool_frame *f, struct payload *body)
{
	fail_msg("there is no other daemon");
	return -EPROTO;
}

static void on_lost(void *arg, uint32_t node, const char *why)
{
	fail_msg("there is no other daemon");
}

static void on_head(void *arg, struct link *l)
{
	link_close(l);
	((struct bed *)arg)->given++;
}

static struct bed *bed_create(void)
{
	static const struct pool_ops ops = { on_frame, on_lost, on_head };
	static const struct log_hook log;
	struct bed *b = calloc(1, sizeof(*b));

	assert_int_equal(loop_create(&b->loop), 0);
	b->node = (struct handshake_self){
		.jobid = "dvm", .build = "test", .position = NODE, .protocol = PROTOCOL_VERSION,
	};
	b->head = b->node;
	b->head.position = HANDSHAKE_SRUN;
	assert_int_equal(pool_open(&b->pool, b->loop, &b->node, true, &ops, b, &log), 0);
	return b;
}

static void bed_destroy(struct bed *b)
{
	pool_close(b->pool);
	while (uv_run(loop_uv(b->loop), UV_RUN_NOWAIT))
		;
	pool_destroy(b->pool);
	loop_destroy(b->loop);
	free(b);
}

static void say(void *arg, struct link *l)
{
	struct caller *c = arg;
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	assert_int_equal(dvm_msg_pack(&b, &c->says), 0);
	assert_int_equal(link_send_bytes(l, FRAME_CONTROL_DOWN, b.data, b.len), 0);
}

static int nothing_comes(void *arg, struct link *l, enum frame_type type, struct payload *body)
{
	return -EPROTO;
}

static void on_end(void *arg, struct link *l, int error)
{
	struct caller *c = arg;

	c->ended = true;
	link_close(l);
	c->link = NULL;
}

/* A head connects and says this. True: the daemon has taken it. */
static bool call(struct bed *b, const struct dvm_msg *says)
{
	static const struct link_ops ops = { .proved = say, .frame = nothing_comes, .end = on_end };
	static const struct link_options options = { .handshake_ms = 60000, .dead_peer_ms = 60000 };
	const struct sockaddr_storage to = loopback(pool_port(b->pool));
	struct caller c = { .bed = b, .says = *says };
	uint32_t before = b->given;

	assert_int_equal(link_connect(&c.link, loop_uv(b->loop), &b->head, NODE, &to, &options,
				      &ops, &c), 0);
	while (b->given == before && !c.ended)
		uv_run(loop_uv(b->loop), UV_RUN_ONCE);
	if (c.link)
		link_close(c.link);
	return b->given > before;
}

static bool call_of(struct bed *b, uint64_t epoch)
{
	return call(b, &(struct dvm_msg){ .type = DVM_CALL, .call.epoch = epoch });
}

static void head_that_was_taken_over_is_refused(void **state)
{
	struct bed *b = bed_create();

	assert_true(call_of(b, 4));
	assert_true(call_of(b, 6));
	assert_false(call_of(b, 5));
	assert_false(call_of(b, 0));
	assert_true(call_of(b, 6)); /* it has given the node up */
	assert_true(call_of(b, 7));
	bed_destroy(b);
}

static void head_that_does_not_say_which_it_is_is_refused(void **state)
{
	struct bed *b = bed_create();

	assert_false(call(b, &(struct dvm_msg){ .type = DVM_STOP, .stop.now = true }));
	assert_true(call_of(b, 1));
	bed_destroy(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_that_was_taken_over_is_refused),
		cmocka_unit_test(head_that_does_not_say_which_it_is_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
