/* SPDX-License-Identifier: BSD-3-Clause */
/* Heads that call a daemon, and a link to another daemon, over real sockets. */
#include "unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dvm/core/dvm_msg.h"
#include "dvm/core/bundle.h"
#include "dvm/node/mesh.h"
#include "libio/listener.h"
#include "libio/protocol.h"
#include "loopback.h"

#define NODE 3
#define OTHER 4

struct bed {
	struct loop *loop;
	struct handshake_self node, head;
	struct pool *pool;
	uint32_t given; /* links to heads, that are the daemon's now */
	uint32_t children; /* links of children, the same */
	uint32_t lost;  /* times that the other daemon was */
	uint32_t logs;
	struct log_hook log;
	/* The other daemon: the port where it is, how often it ends connections, and what it hears. */
	struct handshake_self other;
	struct listener *listener;
	struct link *link;
	struct dvm_address where;
	uint32_t ends, frames;
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
	struct bed *b = arg;

	assert_int_equal(node, OTHER);
	assert_ptr_equal(strstr(why, "cannot connect"), why);
	b->lost++;
}

static void on_head(void *arg, struct link *l)
{
	link_close(l);
	((struct bed *)arg)->given++;
}

static void on_child(void *arg, struct link *l, struct payload *body)
{
	assert_int_equal(link_peer(l)->position, OTHER);
	assert_true(bundle_is(body->data, body->len));
	link_close(l);
	((struct bed *)arg)->children++;
}

static void on_log(void *arg, enum log_level level, const char *text)
{
	((struct bed *)arg)->logs++;
}

static void bed_destroy(void *bed)
{
	struct bed *b = bed;

	pool_close(b->pool);
	listener_close(b->listener);
	link_close(b->link);
	while (uv_run(loop_uv(b->loop), UV_RUN_NOWAIT))
		;
	pool_destroy(b->pool);
	loop_destroy(b->loop);
	free(b);
}

static struct bed *bed_create_retry(uint32_t retry_ms)
{
	static const struct pool_ops ops = { on_frame, on_lost, on_head, on_child };
	const struct pool_options options = { .local = true, .retry_ms = retry_ms };
	struct bed *b = calloc(1, sizeof(*b));

	assert_int_equal(loop_create(&b->loop), 0);
	b->node = (struct handshake_self){
		.jobid = "dvm", .build = "test", .position = NODE, .protocol = PROTOCOL_VERSION,
	};
	b->head = b->node;
	b->head.position = HANDSHAKE_SRUN;
	b->log = (struct log_hook){ on_log, b };
	b->other = b->node;
	b->other.position = OTHER;
	assert_int_equal(pool_open(&b->pool, b->loop, &b->node, &options, &ops, b, &b->log), 0);
	return unit_at_end(bed_destroy, b);
}

static struct bed *bed_create(void)
{
	return bed_create_retry(0);
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

TEST(head_that_was_taken_over_is_refused)
{
	struct bed *b = bed_create();

	assert_true(call_of(b, 4));
	assert_true(call_of(b, 6));
	assert_false(call_of(b, 5));
	assert_false(call_of(b, 0));
	assert_true(call_of(b, 6)); /* the other side has given the node up */
	assert_true(call_of(b, 7));
}

TEST(head_that_does_not_say_which_it_is_is_refused)
{
	struct bed *b = bed_create();

	assert_false(call(b, &(struct dvm_msg){ .type = DVM_STOP, .stop.now = true }));
	assert_true(call_of(b, 1));
}

static void send_bundle(void *arg, struct link *l)
{
	static const uint8_t bundle[] = { DVM_BUNDLE };

	assert_int_equal(link_send_bytes(l, FRAME_CONTROL_UP, bundle, sizeof(bundle)), 0);
}

TEST(daemon_that_sends_a_bundle_first_becomes_a_child)
{
	static const struct link_ops ops = {
		.proved = send_bundle, .frame = nothing_comes, .end = on_end,
	};
	static const struct link_options options = { .handshake_ms = 60000, .dead_peer_ms = 60000 };
	struct bed *b = bed_create();
	const struct sockaddr_storage to = loopback(pool_port(b->pool));
	struct caller c = { .bed = b };

	assert_int_equal(link_connect(&c.link, loop_uv(b->loop), &b->other, NODE, &to, &options,
				      &ops, &c), 0);
	while (!b->children && !c.ended)
		uv_run(loop_uv(b->loop), UV_RUN_ONCE);
	if (c.link)
		link_close(c.link);
	assert_int_equal(b->children, 1);
	assert_int_equal(b->lost, 0);
}

/* ---- the other daemon ---- */

static int hears_frame(void *arg, struct link *l, const void *head, size_t len,
		       struct payload *body)
{
	((struct bed *)arg)->frames++;
	return 0;
}

static void is_proved(void *arg, struct link *l)
{
}

static void has_ended(void *arg, struct link *l, int error)
{
	fail_msg("the link has ended: %s", link_strerror(error));
}

/* As the network ends it, while it is cut; or the daemon is there. */
static void on_connection(void *arg, int fd)
{
	static const struct link_ops ops = {
		.proved = is_proved, .frame = nothing_comes, .message = hears_frame,
		.end = has_ended,
	};
	static const struct link_options options = { .handshake_ms = 60000, .dead_peer_ms = 60000 };
	struct bed *b = arg;

	if (b->ends) {
		b->ends--;
		close(fd);
		return;
	}
	assert_int_equal(link_accept(&b->link, loop_uv(b->loop), &b->other, fd, &options, &ops,
				     b), 0);
}

/* The other node closes the first connections. */
static void start_other(struct bed *b, uint32_t ends)
{
	struct sockaddr_storage to = loopback(0);
	int fd = listener_socket(&to, 0, &b->where.port);

	assert_true(fd >= 0);
	b->ends = ends;
	assert_int_equal(listener_open(&b->listener, loop_uv(b->loop), fd, on_connection, b), 0);
}

static void send_to_other(struct bed *b)
{
	const struct pool_frame f = { .task = 1, .type = FRAME_GOODBYE };

	b->where.ip[10] = b->where.ip[11] = 0xff; /* IPv4 */
	b->where.ip[12] = 127;
	b->where.ip[15] = 1;
	assert_int_equal(pool_send(b->pool, OTHER, &b->where, &f, NULL), 0);
}

static void wait_for(struct bed *b, const uint32_t *count)
{
	while (!*count)
		uv_run(loop_uv(b->loop), UV_RUN_ONCE);
}

TEST(link_that_a_cut_prevents_is_tried_again_and_carries_what_waited)
{
	struct bed *b = bed_create_retry(60000);

	start_other(b, 2);
	send_to_other(b);
	send_to_other(b);
	wait_for(b, &b->frames);
	while (b->frames < 2)
		uv_run(loop_uv(b->loop), UV_RUN_ONCE);
	assert_int_equal(b->ends, 0);
	assert_int_equal(b->lost, 0);
	assert_int_equal(b->logs, 1);
}

TEST(node_is_lost_if_no_link_can_be_made_in_time)
{
	struct bed *b = bed_create_retry(1);

	start_other(b, UINT32_MAX);
	send_to_other(b);
	wait_for(b, &b->lost);
	assert_int_equal(b->frames, 0);
}

/* The daemon has ended: its port is nobody's. */
TEST(node_that_refuses_connections_is_lost_at_once)
{
	struct bed *b = bed_create_retry(60000);

	start_other(b, 0);
	listener_close(b->listener);
	b->listener = NULL;
	uv_run(loop_uv(b->loop), UV_RUN_NOWAIT);
	send_to_other(b);
	wait_for(b, &b->lost);
	assert_int_equal(b->logs, 0); /* it was not to be tried again */
}
