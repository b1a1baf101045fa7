/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requirements of the ring on every transport, over every transport that this machine
 * has (or the one that PMI2X_ALLGATHER_TRANSPORT names): a ring of elements in one
 * process, driven by one loop. A transport that cannot be used is skipped.
 */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "clock.h"
#include "transport.h"

#define ELEMENTS_MAX 8
#define PATIENCE_MS 30000
#define BURST 200        /* messages of each element to each side */
#define LAST_WORDS 60    /* messages: more than one read of TCP takes */
#define FLOOD_MAX 100000 /* messages that no transport may take unread */

struct element {
	const struct transport_ops *ops;
	struct transport *t;
	char address[TRANSPORT_ADDRESS_MAX];
	unsigned char nonce[TRANSPORT_NONCE_LEN];
	int refuse[SIDES];   /* how often -EAGAIN is still to be returned */
	int failure[SIDES];  /* returned after that */
	unsigned received[SIDES];
	size_t last_len[SIDES];
	int broken[SIDES];
	char reason[SIDES][TRANSPORT_REASON_MAX];
};

struct ring {
	struct element at[ELEMENTS_MAX];
	int size;
};

static const struct transport_ops *ops; /* under test */

/* Message k of a side: its length and bytes follow from k. */
static size_t message_len(unsigned k)
{
	static const size_t lens[] = { 1, 7, 64, 4096, TRANSPORT_MESSAGE_MAX };

	return lens[k % 5];
}

static unsigned char message_byte(unsigned k, size_t i)
{
	return (unsigned char)(k * 31 + i * 7 + (i >> 8));
}

static int on_message(void *arg, enum ring_side side, const void *data,
		      size_t len)
{
	struct element *e = arg;
	const unsigned char *bytes = data;
	unsigned k = e->received[side];

	assert_int_equal(e->broken[side], 0);
	if (e->refuse[side]) {
		e->refuse[side]--;
		return -EAGAIN;
	}
	if (e->failure[side])
		return e->failure[side];
	assert_int_equal(len, message_len(k));
	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], message_byte(k, i));
	e->received[side]++;
	e->last_len[side] = len;
	return 0;
}

static void on_broken(void *arg, enum ring_side side, const char *reason)
{
	struct element *e = arg;

	e->broken[side]++;
	snprintf(e->reason[side], TRANSPORT_REASON_MAX, "%s", reason);
}

static void open_element(struct element *e, int index)
{
	struct transport_params params = {
		.events = { e, on_message, on_broken },
	};
	char why[TRANSPORT_REASON_MAX] = "";

	e->ops = ops;
	memset(e->nonce, index + 1, sizeof(e->nonce));
	memcpy(params.nonce, e->nonce, sizeof(e->nonce));
	if (ops->open(&e->t, &params, why))
		fail_msg("%s: %s", ops->name, why);
	memset(e->address, 'x', sizeof(e->address));
	ops->address(e->t, e->address);
	assert_true(strlen(e->address) < TRANSPORT_ADDRESS_MAX);
	assert_null(strpbrk(e->address, " ;,"));
}

static struct ring *open_ring(int size)
{
	struct ring *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->size = size;
	for (int i = 0; i < size; i++)
		open_element(&r->at[i], i);
	return r;
}

static struct element *neighbour(struct ring *r, int i, enum ring_side side)
{
	return &r->at[(i + (side == SIDE_RIGHT ? 1 : r->size - 1)) % r->size];
}

static void connect_side(struct ring *r, int i, enum ring_side side)
{
	struct element *to = neighbour(r, i, side);
	struct transport_peer peer = { .address = to->address };
	char why[TRANSPORT_REASON_MAX] = "";

	memcpy(peer.nonce, to->nonce, sizeof(peer.nonce));
	if (ops->connect(r->at[i].t, side, &peer, why))
		fail_msg("%s: connect: %s", ops->name, why);
}

static int progress(struct ring *r)
{
	int count = 0;

	for (int i = 0; i < r->size; i++)
		if (r->at[i].t)
			count += ops->progress(r->at[i].t);
	return count;
}

/* Progress until `done` holds. */
static void until(struct ring *r, bool (*done)(struct ring *r))
{
	int64_t end = clock_ms() + PATIENCE_MS;

	while (!done(r)) {
		if (!progress(r))
			for (int i = 0; i < r->size; i++)
				if (r->at[i].t)
					ops->wait(r->at[i].t, 1);
		if (clock_ms() > end)
			fail_msg("%s: nothing happens any more", ops->name);
	}
}

static bool all_connected(struct ring *r)
{
	for (int i = 0; i < r->size; i++)
		for (int side = 0; side < SIDES; side++)
			if (!ops->connected(r->at[i].t, side))
				return false;
	return true;
}

static bool all_flushed(struct ring *r)
{
	for (int i = 0; i < r->size; i++)
		if (!ops->flushed(r->at[i].t))
			return false;
	return true;
}

static struct ring *connected_ring(int size)
{
	struct ring *r = open_ring(size);

	for (int i = 0; i < size; i++)
		for (int side = 0; side < SIDES; side++)
			connect_side(r, i, side);
	until(r, all_connected);
	return r;
}

static void close_ring(struct ring *r)
{
	for (int i = 0; i < r->size; i++)
		ops->close(r->at[i].t);
	free(r);
}

/* In two pieces, so that gathering is tried as well. */
static int send_as(struct element *e, enum ring_side side, unsigned k,
		   bool last)
{
	static unsigned char bytes[TRANSPORT_MESSAGE_MAX];
	size_t len = message_len(k), cut = len / 3;
	struct iovec iov[2] = { { bytes, cut }, { bytes + cut, len - cut } };

	for (size_t i = 0; i < len; i++)
		bytes[i] = message_byte(k, i);
	return ops->send(e->t, side, iov, 2, last);
}

static int send_message(struct element *e, enum ring_side side, unsigned k)
{
	return send_as(e, side, k, false);
}

/* ---- tests ---- */

TEST(rings_of_every_size_connect)
{
	for (int size = 2; size <= ELEMENTS_MAX; size++)
		close_ring(connected_ring(size));
}

static bool burst_is_over(struct ring *r)
{
	for (int i = 0; i < r->size; i++)
		for (int side = 0; side < SIDES; side++)
			if (r->at[i].received[side] < BURST)
				return false;
	return true;
}

/* Everybody sends to both sides as fast as the transport takes it. */
static void burst(struct ring *r)
{
	unsigned sent[ELEMENTS_MAX][SIDES] = { { 0 } };
	int64_t end = clock_ms() + PATIENCE_MS;

	while (!burst_is_over(r)) {
		for (int i = 0; i < r->size; i++)
			for (int side = 0; side < SIDES; side++) {
				unsigned *k = &sent[i][side];
				int rc = 0;

				while (*k < BURST && !rc) {
					rc = send_message(&r->at[i], side, *k);
					*k += !rc;
				}
				assert_true(rc == 0 || rc == -EAGAIN);
			}
		progress(r);
		assert_true(clock_ms() < end);
	}
}

TEST(messages_arrive_whole_and_in_order)
{
	for (int size = 2; size <= 4; size++) {
		struct ring *r = connected_ring(size);

		burst(r);
		until(r, all_flushed);
		close_ring(r);
	}
}

/* A neighbour that does not read is not sent to without end, and loses nothing. */
TEST(a_transport_takes_no_more_than_it_can_hold)
{
	struct ring *r = connected_ring(2);
	unsigned sent = 0;
	int64_t end = clock_ms() + PATIENCE_MS;

	while (sent < FLOOD_MAX && !send_message(&r->at[0], SIDE_RIGHT, sent))
		sent++;
	assert_true(sent > 0 && sent < FLOOD_MAX);
	assert_int_equal(send_message(&r->at[0], SIDE_RIGHT, sent), -EAGAIN);
	/* But for last words there is always room. */
	assert_int_equal(send_as(&r->at[0], SIDE_RIGHT, sent++, true), 0);
	while (r->at[1].received[SIDE_LEFT] < sent) {
		progress(r);
		assert_true(clock_ms() < end);
	}
	until(r, all_flushed);
	close_ring(r);
}

TEST(a_message_that_is_refused_comes_again)
{
	struct ring *r = connected_ring(3);

	r->at[1].refuse[SIDE_LEFT] = 5;
	r->at[2].refuse[SIDE_RIGHT] = 17;
	burst(r);
	close_ring(r);
}

static unsigned last_words; /* messages before the end */

static bool second_is_told(struct ring *r)
{
	return r->at[1].broken[SIDE_LEFT] &&
	       r->at[1].received[SIDE_LEFT] == last_words;
}

/* A neighbour that closes has been heard: its messages come first, then the end. */
TEST(messages_arrive_before_the_end)
{
	struct ring *r = connected_ring(3);
	struct element *first = &r->at[0];

	r->at[1].refuse[SIDE_LEFT] = 3;
	last_words = 0;
	while (last_words < LAST_WORDS &&
	       !send_message(first, SIDE_RIGHT, last_words))
		last_words++;
	assert_true(last_words >= 2);
	while (!ops->flushed(first->t))
		ops->progress(first->t);
	ops->close(first->t);
	first->t = NULL;
	until(r, second_is_told);
	assert_int_equal(r->at[1].broken[SIDE_LEFT], 1);
	assert_true(strlen(r->at[1].reason[SIDE_LEFT]) > 0);
	assert_int_equal(r->at[1].broken[SIDE_RIGHT], 0);
	assert_int_equal(send_message(&r->at[1], SIDE_LEFT, 0), -EPIPE);
	assert_int_equal(send_message(&r->at[1], SIDE_RIGHT, 0), 0);
	close_ring(r);
}

static bool first_three_have_come(struct ring *r)
{
	return r->at[1].received[SIDE_RIGHT] == 3;
}

/* After an error from the owner, a side is silent; the other one works. */
TEST(an_owner_that_refuses_hears_no_more)
{
	struct ring *r = connected_ring(3);

	r->at[1].failure[SIDE_LEFT] = -EPROTO;
	for (unsigned k = 0; k < 3; k++) {
		send_message(&r->at[0], SIDE_RIGHT, k);
		assert_int_equal(send_message(&r->at[2], SIDE_LEFT, k), 0);
	}
	until(r, first_three_have_come);
	assert_int_equal(r->at[1].received[SIDE_LEFT], 0);
	assert_int_equal(r->at[1].broken[SIDE_LEFT], 0);
	close_ring(r);
}

/* Whatever is in an address: an error, no crash, and nothing is left open. */
TEST(wrong_addresses_are_refused)
{
	static const char *const wrong[] = {
		"", "x", "+", "1+", "0+127.0.0.1", "70000+127.0.0.1",
		"80+127.0.0", "80+127.0.0.1+", "99999999999999999999",
		"80+1.2.3.4x", "----------------------------------------",
	};
	struct ring *r = open_ring(2);
	char why[TRANSPORT_REASON_MAX];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct transport_peer peer = { .address = wrong[i] };

		why[0] = '\0';
		assert_int_equal(ops->connect(r->at[0].t, SIDE_RIGHT, &peer,
					      why), -EINVAL);
		assert_true(why[0] != '\0');
	}
	close_ring(r);
}

/* A cut makes an address wrong, or the address reaches nobody. */
TEST(truncated_addresses_do_not_crash)
{
	struct ring *r = open_ring(2);
	size_t n = strlen(r->at[1].address);
	char why[TRANSPORT_REASON_MAX], text[TRANSPORT_ADDRESS_MAX];

	for (size_t len = 0; len < n; len++) {
		struct transport_peer peer = { .address = text };
		struct element e;

		memset(&e, 0, sizeof(e));
		open_element(&e, 3);
		memcpy(text, r->at[1].address, len);
		text[len] = '\0';
		if (!ops->connect(e.t, SIDE_RIGHT, &peer, why))
			ops->progress(e.t);
		ops->close(e.t);
	}
	close_ring(r);
}

TEST(closing_early_is_allowed)
{
	struct ring *r = open_ring(3);

	connect_side(r, 0, SIDE_RIGHT);
	connect_side(r, 1, SIDE_LEFT);
	progress(r);
	close_ring(r);
	ops->close(NULL);
}

static bool usable(const struct transport_ops *candidate)
{
	struct transport_params params = { .events = { NULL, NULL, NULL } };
	char why[TRANSPORT_REASON_MAX] = "";
	struct transport *t;

	if (candidate->open(&t, &params, why)) {
		print_message("%s: skipped: %s\n", candidate->name, why);
		return false;
	}
	candidate->close(t);
	return true;
}

int main(void)
{
	const char *only = getenv("PMI2X_ALLGATHER_TRANSPORT");
	int failed = 0, ran = 0;

	for (int i = 0; transports[i]; i++) {
		ops = transports[i];
		if ((only && strcmp(only, ops->name)) || !usable(ops))
			continue;
		ran++;
		failed += unit_run(ops->name, NULL, NULL);
	}
	return failed ? 1 : ran ? 0 : 77;
}
