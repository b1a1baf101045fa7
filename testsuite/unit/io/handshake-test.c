/* SPDX-License-Identifier: BSD-3-Clause */
/* The handshake: who gets through, and everybody who must not. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "libio/handshake.h"
#include "libutil/pack.h"

static struct secret secret, other_secret;
static struct sockaddr_storage addr_a, addr_b;

static struct sockaddr_storage ipv4(const char *ip, uint16_t port)
{
	struct sockaddr_storage s = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&s;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	inet_pton(AF_INET, ip, &in->sin_addr);
	return s;
}

static struct sockaddr_storage ipv6(const char *ip, uint16_t port)
{
	struct sockaddr_storage s = { 0 };
	struct sockaddr_in6 *in = (struct sockaddr_in6 *)&s;

	in->sin6_family = AF_INET6;
	in->sin6_port = htons(port);
	inet_pton(AF_INET6, ip, &in->sin6_addr);
	return s;
}

static struct handshake_self self(uint32_t position)
{
	return (struct handshake_self){
		.secret = secret,
		.jobid = "17.0",
		.build = "0.1.0",
		.position = position,
		.protocol = 5,
	};
}

/* A connector (position 3, at addr_a) and an acceptor (position 1, addr_b). */
struct pair {
	struct handshake_self selves[2];
	struct handshake *connector, *acceptor;
	enum handshake_state states[2];
};

static void pair_open(struct pair *p)
{
	assert_int_equal(handshake_connect(&p->connector, &p->selves[0], 1,
					   &addr_a, &addr_b), 0);
	assert_int_equal(handshake_accept(&p->acceptor, &p->selves[1], &addr_b,
					  &addr_a), 0);
	p->states[0] = p->states[1] = HANDSHAKE_UNDER_WAY;
}

static void pair_begin(struct pair *p)
{
	p->selves[0] = self(3);
	p->selves[1] = self(1);
}

static void pair_end(struct pair *p)
{
	handshake_destroy(p->connector);
	handshake_destroy(p->acceptor);
}

static void end_pair(void *pair)
{
	pair_end(pair);
	free(pair);
}

static struct pair *new_pair(void)
{
	struct pair *p = calloc(1, sizeof(*p));

	pair_begin(p);
	return unit_at_end(end_pair, p);
}

#define PAIR_TEST(name) TEST_ON(name, struct pair *p, new_pair())

/* Feed bytes at most `step` at a time; bytes that are not wanted are left. */
static size_t feed(struct handshake *h, const char *data, size_t len,
		   size_t step, enum handshake_state *state)
{
	size_t fed = 0, n;
	void *at;

	while (fed < len && (n = handshake_room(h, &at))) {
		n = n < step ? n : step;
		n = n < len - fed ? n : len - fed;
		memcpy(at, data + fed, n);
		*state = handshake_input(h, n);
		fed += n;
	}
	return fed;
}

static void pass(struct handshake *from, struct handshake *to, size_t step,
		 enum handshake_state *state)
{
	struct buf *out = handshake_output(from);

	feed(to, out->data, out->len, step, state);
	buf_clear(out);
}

static void pair_run(struct pair *p, size_t step)
{
	pass(p->connector, p->acceptor, step, &p->states[1]);
	pass(p->acceptor, p->connector, step, &p->states[0]);
	pass(p->connector, p->acceptor, step, &p->states[1]);
}

TEST(both_sides_of_a_step_get_through)
{
	for (size_t step = 1; step < 200; step++) {
		struct pair p;

		pair_begin(&p);
		pair_open(&p);
		pair_run(&p, step);
		assert_int_equal(p.states[0], HANDSHAKE_PROVED);
		assert_int_equal(p.states[1], HANDSHAKE_PROVED);
		assert_int_equal(handshake_peer(p.acceptor)->position, 3);
		assert_int_equal(handshake_peer(p.connector)->position, 1);
		assert_string_equal(handshake_peer(p.acceptor)->build, "0.1.0");
		pair_end(&p);
	}
}

PAIR_TEST(nothing_beyond_the_handshake_is_read)
{
	struct buf *out;

	pair_open(p);
	pass(p->connector, p->acceptor, 1000, &p->states[1]);
	pass(p->acceptor, p->connector, 1000, &p->states[0]);
	out = handshake_output(p->connector);
	buf_puts(out, "frames");
	assert_int_equal(feed(p->acceptor, out->data, out->len, 1000,
			      &p->states[1]), out->len - 6);
	assert_int_equal(p->states[1], HANDSHAKE_PROVED);
}

PAIR_TEST(another_secret_is_refused_by_both)
{
	p->selves[1].secret = other_secret;
	pair_open(p);
	pair_run(p, 1000);
	assert_int_equal(p->states[0], HANDSHAKE_FAILED);
	assert_int_equal(handshake_error(p->connector), -EACCES);
	assert_int_not_equal(p->states[1], HANDSHAKE_PROVED);
}

PAIR_TEST(another_node_or_step_is_not_taken_for_this_one)
{
	p->selves[1].position = 2;
	pair_open(p);
	pair_run(p, 1000);
	assert_int_equal(handshake_error(p->acceptor), -EADDRNOTAVAIL);
	assert_int_equal(handshake_error(p->connector), -EADDRNOTAVAIL);
	pair_end(p);

	pair_begin(p);
	p->selves[1].jobid = "18.0";
	pair_open(p);
	pair_run(p, 1000);
	assert_int_equal(handshake_error(p->acceptor), -EADDRNOTAVAIL);
	assert_int_equal(handshake_error(p->connector), -EADDRNOTAVAIL);
}

/* Pass all bytes on; each side sees the relay's addresses. */
static void relay(const struct sockaddr_storage *to_connector,
		  const struct sockaddr_storage *to_acceptor)
{
	struct pair p;

	pair_begin(&p);
	handshake_connect(&p.connector, &p.selves[0], 1, &addr_a, to_connector);
	handshake_accept(&p.acceptor, &p.selves[1], &addr_b, to_acceptor);
	p.states[0] = p.states[1] = HANDSHAKE_UNDER_WAY;
	pair_run(&p, 1000);
	assert_int_equal(handshake_error(p.connector), -EACCES);
	assert_int_not_equal(p.states[1], HANDSHAKE_PROVED);
	pair_end(&p);
}

TEST(a_relay_is_refused)
{
	struct sockaddr_storage other_ip = ipv4("10.0.0.9", 4000);
	struct sockaddr_storage other_port = ipv4("10.0.0.1", 4001);
	struct sockaddr_storage far_ip = ipv4("10.0.0.9", 5000);
	struct sockaddr_storage far_port = ipv4("10.0.0.2", 5001);

	relay(&addr_b, &other_ip);
	relay(&addr_b, &other_port);
	relay(&far_ip, &addr_a);
	relay(&far_port, &addr_a);
}

/* A peer without the secret sends the acceptor's own proof back to it. */
PAIR_TEST(a_reflection_is_refused)
{
	struct buf forged, *answer;

	pair_open(p);
	pass(p->connector, p->acceptor, 1000, &p->states[1]);
	answer = handshake_output(p->acceptor);
	buf_init(&forged, 100);
	buf_append(&forged, "pmi2x\r\n\0\3\0\40\0", 12);
	buf_append(&forged, answer->data + answer->len - PROOF_BYTES,
		   PROOF_BYTES);
	feed(p->acceptor, forged.data, forged.len, 1000, &p->states[1]);
	assert_int_equal(p->states[1], HANDSHAKE_FAILED);
	assert_int_equal(handshake_error(p->acceptor), -EACCES);
	buf_free(&forged);
}

TEST(a_replay_is_refused)
{
	struct buf hello, proof, *out;
	enum handshake_state late = HANDSHAKE_UNDER_WAY;
	struct handshake *acceptor;
	struct pair p;

	buf_init(&hello, 1000);
	buf_init(&proof, 1000);
	pair_begin(&p);
	pair_open(&p);
	out = handshake_output(p.connector);
	buf_append(&hello, out->data, out->len);
	pass(p.connector, p.acceptor, 1000, &p.states[1]);
	pass(p.acceptor, p.connector, 1000, &p.states[0]);
	out = handshake_output(p.connector);
	buf_append(&proof, out->data, out->len);

	handshake_accept(&acceptor, &p.selves[1], &addr_b, &addr_a);
	feed(acceptor, hello.data, hello.len, 1000, &late);
	assert_int_equal(late, HANDSHAKE_UNDER_WAY);
	feed(acceptor, proof.data, proof.len, 1000, &late);
	assert_int_equal(late, HANDSHAKE_FAILED);
	assert_int_equal(handshake_error(acceptor), -EACCES);
	handshake_destroy(acceptor);
	buf_free(&hello);
	buf_free(&proof);
	pair_end(&p);
}

PAIR_TEST(another_build_is_no_reason_to_refuse)
{
	p->selves[0].build = "0.2.0";
	pair_open(p);
	pair_run(p, 1000);
	assert_int_equal(p->states[0], HANDSHAKE_PROVED);
	assert_int_equal(p->states[1], HANDSHAKE_PROVED);
	assert_true(handshake_other_build(handshake_peer(p->connector),
					  &p->selves[0]));
	assert_true(handshake_other_build(handshake_peer(p->acceptor),
					  &p->selves[1]));
}

PAIR_TEST(another_protocol_is_named_on_both_sides)
{
	char why[512];

	p->selves[0].build = "0.2.0";
	p->selves[0].protocol = 6;
	pair_open(p);
	pair_run(p, 1000);
	assert_int_equal(handshake_error(p->connector), -EPROTONOSUPPORT);
	assert_string_equal(handshake_peer(p->connector)->build, "0.1.0");
	assert_int_equal(handshake_error(p->acceptor), -EPROTONOSUPPORT);
	assert_string_equal(handshake_peer(p->acceptor)->build, "0.2.0");
	handshake_explain(why, sizeof(why), "node n3",
			  handshake_peer(p->acceptor), "srun", &p->selves[1]);
	assert_string_equal(why, "node n3 speaks protocol 6 (build 0.2.0), srun protocol 5 (build 0.1.0): install one version of pmi2x on all nodes, and where srun runs");
}

/* Version 9 speaks: a message of its own, at the end of `out`. */
static void put_version_9(struct buf *out, const struct buf *body)
{
	buf_append(out, "pmi2x\r\n\0\t\0", 10);
	pack_u16(out, body->len);
	buf_append(out, body->data, body->len);
}

/* The answer of every version to the hello of another one: see handshake.h. */
static void put_refusal(struct buf *body, const struct secret *s,
			const struct buf *hello, const char *build)
{
	uint8_t proof[PROOF_BYTES];
	struct buf covered;

	pack_str(body, build);
	pack_u16(body, 8); /* its protocol */
	pack_u8(body, 2);
	buf_init(&covered, 1000);
	pack_str(&covered, "pmi2x link: another version");
	buf_append(&covered, hello->data, hello->len);
	buf_append(&covered, body->data, body->len);
	proof_create(s, covered.data, covered.len, proof);
	buf_append(body, proof, sizeof(proof));
	buf_free(&covered);
}

/* An acceptor of version 9 that has this secret answers; `cut` bytes are lacking. */
static void answer_of_version_9(struct pair *p, const struct secret *s,
				const struct buf *hello, unsigned cut)
{
	struct buf body, answer;

	buf_init(&body, 1000);
	buf_init(&answer, 1000);
	put_refusal(&body, s, hello, "9.\n0");
	body.len -= cut;
	put_version_9(&answer, &body);
	feed(p->connector, answer.data, answer.len, 1, &p->states[0]);
	assert_int_equal(p->states[0], HANDSHAKE_FAILED);
	buf_free(&answer);
	buf_free(&body);
}

PAIR_TEST(another_handshake_is_named_to_who_connects)
{
	char why[512];

	pair_open(p);
	answer_of_version_9(p, &secret, handshake_output(p->connector), 0);
	assert_int_equal(handshake_error(p->connector), -EPROTONOSUPPORT);
	handshake_explain(why, sizeof(why), "node n3",
			  handshake_peer(p->connector), "node n1", &p->selves[0]);
	assert_string_equal(why, "node n3 speaks protocol 8 (build 9.?0), node n1 protocol 5 (build 0.1.0): install one version of pmi2x on all nodes, and where srun runs");
}

PAIR_TEST(another_handshake_is_believed_for_a_proof_only)
{
	struct buf other;

	pair_open(p);
	answer_of_version_9(p, &other_secret, handshake_output(p->connector), 0);
	assert_int_equal(handshake_error(p->connector), -ENOPROTOOPT);
	pair_end(p);

	pair_open(p);
	answer_of_version_9(p, &secret, handshake_output(p->connector), 1);
	assert_int_equal(handshake_error(p->connector), -ENOPROTOOPT);
	pair_end(p);

	pair_open(p); /* the answer to an earlier hello */
	buf_init(&other, 1000);
	buf_append(&other, handshake_output(p->connector)->data,
		   handshake_output(p->connector)->len);
	pair_end(p);
	pair_open(p);
	answer_of_version_9(p, &secret, &other, 0);
	assert_int_equal(handshake_error(p->connector), -ENOPROTOOPT);
	buf_free(&other);
}

/* Compare the bytes from the body on: the header has this version. */
PAIR_TEST(a_hello_of_another_version_is_refused_with_a_proof)
{
	struct buf hello, body, expected, *out;

	p->selves[1].protocol = 8;
	pair_open(p);
	buf_init(&hello, 1000);
	buf_init(&body, 1000);
	buf_init(&expected, 1000);
	pack_str(&body, "9.\n0");
	buf_append(&body, "what version 9 says", 19);
	put_version_9(&hello, &body);
	feed(p->acceptor, hello.data, hello.len, 1, &p->states[1]);
	assert_int_equal(handshake_error(p->acceptor), -ENOPROTOOPT);
	assert_string_equal(handshake_peer(p->acceptor)->build, "9.?0");
	put_refusal(&expected, &secret, &hello, "0.1.0");
	out = handshake_output(p->acceptor);
	assert_int_equal(out->len, 12 + expected.len);
	assert_memory_equal(out->data + 12, expected.data, expected.len);
	buf_free(&expected);
	buf_free(&body);
	buf_free(&hello);
}

PAIR_TEST(ipv4_and_its_mapped_form_are_the_same)
{
	struct sockaddr_storage mapped = ipv6("::ffff:10.0.0.1", 4000);

	handshake_connect(&p->connector, &p->selves[0], 1, &addr_a, &addr_b);
	handshake_accept(&p->acceptor, &p->selves[1], &addr_b, &mapped);
	p->states[0] = p->states[1] = HANDSHAKE_UNDER_WAY;
	pair_run(p, 1000);
	assert_int_equal(p->states[1], HANDSHAKE_PROVED);
}

PAIR_TEST(garbage_is_refused_at_once)
{
	size_t used;

	pair_open(p);
	used = feed(p->acceptor, "GET / HTTP/1.0\r\n", 16, 1, &p->states[1]);
	assert_int_equal(used, 1);
	assert_int_equal(handshake_error(p->acceptor), -EPROTO);
	pair_end(p);

	pair_begin(p);
	pair_open(p);
	feed(p->acceptor, "pmi2x\r\n\0\1\0\377\377", 12, 12, &p->states[1]);
	assert_int_equal(handshake_error(p->acceptor), -EPROTO); /* too long */
}

/* Any byte of the three messages changed: nobody is fooled, nothing crashes. */
TEST(no_changed_byte_goes_unnoticed)
{
	for (int message = 0; message < 3; message++) {
		for (size_t i = 0; i < HANDSHAKE_MESSAGE_MAX; i++) {
			struct handshake *from, *to;
			struct pair p;
			struct buf *out;

			pair_begin(&p);
			pair_open(&p);
			if (message > 0)
				pass(p.connector, p.acceptor, 999,
				     &p.states[1]);
			if (message > 1)
				pass(p.acceptor, p.connector, 999,
				     &p.states[0]);
			from = message == 1 ? p.acceptor : p.connector;
			to = message == 1 ? p.connector : p.acceptor;
			out = handshake_output(from);
			if (i < out->len)
				out->data[i] ^= 0x41;
			else
				i = HANDSHAKE_MESSAGE_MAX;
			pass(from, to, 999, &p.states[message != 1]);
			pass(to, from, 999, &p.states[message == 1]);
			pass(from, to, 999, &p.states[message != 1]);
			if (i < HANDSHAKE_MESSAGE_MAX)
				assert_int_not_equal(p.states[1],
						     HANDSHAKE_PROVED);
			pair_end(&p);
		}
	}
}

static int set_up(void **state)
{
	addr_a = ipv4("10.0.0.1", 4000);
	addr_b = ipv4("10.0.0.2", 5000);
	return secret_create(&secret) || secret_create(&other_secret);
}

int main(void)
{
	return unit_run(NULL, set_up, NULL);
}
