/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of pmi2x-pmixd to its host: messages in pieces, and their order. */
#include "unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/pmixd/link.h"
#include "helpers/pmixd/pieces.h"

#define RANKS 200       /* pieces: more than one call sends */
#define LARGE 3000000   /* bytes that no socket takes at once */

struct pair {
	int fds[2];
	struct link from, to;
};

static int set_up(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p->fds), 0);
	link_init(&p->from, p->fds[0]);
	link_init(&p->to, p->fds[1]);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *p = *state;

	link_free(&p->from);
	link_free(&p->to);
	close(p->fds[0]);
	close(p->fds[1]);
	free(p);
	return 0;
}

/* Send and read until a message has come. */
static void receive(struct pair *p, struct pmix_msg *m, struct payload **whole)
{
	while (!link_next(&p->to, m, whole)) {
		assert_int_equal(link_write(&p->from), 0);
		assert_int_equal(link_read(&p->to), 0);
	}
}

static void send_small(struct pair *p, uint64_t id)
{
	assert_int_equal(link_send(&p->from, &(struct pmix_msg){
		.type = PMIX_MSG_ENTER, .id = id, .data = "small", .len = 5 }), 0);
}

static void expect_small(struct pair *p, uint64_t id)
{
	struct pmix_msg m;

	receive(p, &m, NULL);
	assert_int_equal(m.id, id);
	assert_int_equal(m.len, 5);
	assert_memory_equal(m.data, "small", 5);
}

/* All together are more than the socket takes at once. */
static size_t len_of(uint32_t rank)
{
	return rank * (size_t)97;
}

static struct payload *data_of(uint32_t rank)
{
	struct payload *data = payload_new(len_of(rank));

	memset(data->data, 'a' + (int)(rank % 26), data->len);
	return data;
}

/* As ENTER: a number of each rank, and then its bytes, which stay where they are. */
static void send_ranks(struct pair *p, struct payload **last)
{
	struct pmix_msg m = { .type = PMIX_MSG_ENTER, .id = 2 };
	struct pieces out;

	pieces_init(&out, SIZE_MAX);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct payload *data = data_of(r);

		assert_int_equal(pack_u32(&out.last, r), 0);
		assert_int_equal(pieces_add(&out, data), 0);
		*last = data;
		payload_unref(data);
	}
	assert_int_equal(pack_u32(&out.last, RANKS), 0);
	assert_int_equal(pieces_end(&out), 0);
	m.len = out.list.bytes;
	assert_int_equal(link_send_pieces(&p->from, &m, &out.list), 0);
	pieces_free(&out);
}

TEST_WITH(pieces_come_as_one_message_in_its_place, set_up, tear_down)
{
	struct pair *p = *state;
	struct payload *last;
	struct pmix_msg m;
	struct cursor c;

	send_small(p, 1);
	send_ranks(p, &last);
	assert_int_equal(last->refs, 1); /* not copied: the link has it */
	send_small(p, 3);
	expect_small(p, 1);
	receive(p, &m, NULL);
	assert_int_equal(m.id, 2);
	cursor_init(&c, m.data, m.len);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct payload *want = data_of(r);

		assert_int_equal(unpack_u32(&c), r);
		assert_memory_equal(unpack_raw(&c, want->len), want->data, want->len);
		payload_unref(want);
	}
	assert_int_equal(unpack_u32(&c), RANKS);
	assert_true(cursor_ok(&c) && !cursor_left(&c));
	expect_small(p, 3);
	assert_false(link_has_to_write(&p->from));
}

TEST_WITH(large_message_is_read_to_where_it_stays, set_up, tear_down)
{
	struct pair *p = *state;
	struct payload *large = payload_new(LARGE), *whole;
	struct payload_vec data;
	struct pmix_msg m = { .type = PMIX_MSG_ENTER, .id = 1, .len = LARGE }, later;

	memset(large->data, 'x', LARGE);
	payload_vec_init(&data);
	assert_int_equal(payload_vec_add(&data, large), 0);
	assert_int_equal(link_send_pieces(&p->from, &m, &data), 0);
	receive(p, &m, &whole);
	assert_int_equal(m.len, LARGE);
	assert_memory_equal(m.data, large->data, LARGE);
	/* The message's bytes outlive it with a reference. */
	assert_ptr_equal(whole->data + whole->len, (const char *)m.data + m.len);
	payload_ref(whole);
	assert_int_equal(link_next(&p->to, &later, NULL), 0);
	assert_memory_equal(m.data, large->data, LARGE);
	payload_unref(whole);
	payload_vec_clear(&data);
	payload_unref(large);
}

TEST_WITH(end_is_reported_behind_the_messages, set_up, tear_down)
{
	struct pair *p = *state;
	struct pmix_msg m;

	send_small(p, 1);
	assert_int_equal(link_write(&p->from), 0);
	shutdown(p->fds[0], SHUT_WR);
	assert_int_equal(link_read(&p->to), 0);
	expect_small(p, 1);
	assert_int_equal(link_next(&p->to, &m, NULL), 0);
	assert_int_equal(link_read(&p->to), -EPIPE);
}

TEST_WITH(invalid_message_is_an_error, set_up, tear_down)
{
	struct pair *p = *state;
	struct pmix_msg m;
	struct buf b;

	buf_init(&b, SIZE_MAX);
	assert_int_equal(pmix_msg_pack(&b, &(struct pmix_msg){
		.type = PMIX_MSG_TYPES }), 0);
	assert_int_equal(write(p->fds[0], b.data, b.len), b.len);
	assert_int_equal(link_read(&p->to), 0);
	assert_int_equal(link_next(&p->to, &m, NULL), -EPROTO);
	assert_int_equal(write(p->fds[0], "\0\0\0\0", 4), 4);
	assert_int_equal(link_read(&p->to), -EPROTO);
	buf_free(&b);
}

TEST_WITH(data_over_the_limit_of_a_message_is_rejected, set_up, tear_down)
{
	struct pair *p = *state;

	assert_int_equal(link_send(&p->from, &(struct pmix_msg){
		.type = PMIX_MSG_ENTER, .data = "", .len = PMIX_MSG_BYTES_MAX }),
			 -EMSGSIZE);
	assert_false(link_has_to_write(&p->from));
}
