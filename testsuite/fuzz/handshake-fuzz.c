/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handshake of a link. A stranger's bytes to either side never prove
 * anything; nor do two honest sides when one bit between them is changed.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sodium.h>

#include "libio/handshake.h"

static uint32_t numbers; /* the same ones for each input */

static const char *name(void)
{
	return "counter";
}

static uint32_t next(void)
{
	return numbers++;
}

static void fill(void *const to, const size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = (uint8_t)next();
}

static void no_chance(void)
{
	static randombytes_implementation counter = {
		.implementation_name = name,
		.random = next,
		.buf = fill,
	};

	randombytes_set_implementation(&counter);
	FUZZ_CHECK(sodium_init() >= 0);
	numbers = 0;
}

struct side {
	struct handshake_self self;
	struct handshake *h;
};

static void start(struct side *s, bool connector)
{
	struct sockaddr_storage here, there;
	struct sockaddr_in *in = (struct sockaddr_in *)&here;
	int rc;

	memset(&here, 0, sizeof(here));
	in->sin_family = AF_INET;
	in->sin_port = htons(connector ? 1000 : 2000);
	there = here;
	((struct sockaddr_in *)&there)->sin_port =
		htons(connector ? 2000 : 1000);
	s->self = (struct handshake_self){
		.jobid = "7.0", .build = "0.1.0", .protocol = 1,
		.position = connector,
	};
	rc = connector ? handshake_connect(&s->h, &s->self, 0, &here, &there) :
			 handshake_accept(&s->h, &s->self, &here, &there);
	FUZZ_CHECK(!rc);
}

/* Feed what fits; what is left over is not for the handshake. */
static enum handshake_state feed(struct side *s, const uint8_t *data,
				 size_t len)
{
	enum handshake_state state = HANDSHAKE_UNDER_WAY;

	while (len && state == HANDSHAKE_UNDER_WAY) {
		void *to;
		size_t n = handshake_room(s->h, &to);

		FUZZ_CHECK(n > 0);
		n = n < len ? n : len;
		memcpy(to, data, n);
		state = handshake_input(s->h, n);
		data += n;
		len -= n;
	}
	FUZZ_CHECK(handshake_output(s->h)->len <= 2 * HANDSHAKE_MESSAGE_MAX);
	return state;
}

static void end(struct side *s, enum handshake_state state)
{
	const struct handshake_peer *peer = handshake_peer(s->h);

	FUZZ_CHECK((state == HANDSHAKE_FAILED) == (handshake_error(s->h) < 0));
	FUZZ_CHECK(strlen(peer->build) <= HANDSHAKE_BUILD_MAX);
	handshake_destroy(s->h);
}

static void stranger(struct fuzz_input *in, bool connector)
{
	enum handshake_state state;
	struct side s;

	start(&s, connector);
	state = feed(&s, in->at, in->left);
	FUZZ_CHECK(state != HANDSHAKE_PROVED);
	end(&s, state);
}

/* A byte of all that crosses, and what is done to it. */
struct change {
	size_t at; /* how many bytes before it have yet to cross */
	uint8_t mask;
	bool made;
};

/* From one side to the other; true when something crossed. */
static bool cross(struct side *from, struct side *to, struct change *change,
		  enum handshake_state *state)
{
	struct buf *out = handshake_output(from->h);
	size_t len = out->len;

	if (!len)
		return false;
	if (!change->made && change->at < len) {
		out->data[change->at] ^= change->mask;
		change->made = true;
	}
	change->at -= change->made ? 0 : len;
	*state = feed(to, (const uint8_t *)out->data, len);
	buf_clear(out);
	return true;
}

static void relayed(struct fuzz_input *in)
{
	struct change change = { .at = fuzz_u16(in) };
	enum handshake_state a = HANDSHAKE_UNDER_WAY, b = a;
	struct side connector, acceptor;

	change.mask = fuzz_u8(in);
	start(&connector, true);
	start(&acceptor, false);
	while (cross(&connector, &acceptor, &change, &b) ||
	       cross(&acceptor, &connector, &change, &a))
		;
	FUZZ_CHECK((a == HANDSHAKE_PROVED && b == a) ==
		   !(change.made && change.mask));
	end(&connector, a);
	end(&acceptor, b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint8_t what = fuzz_u8(&in) % 3;

	no_chance();
	if (what == 2)
		relayed(&in);
	else
		stranger(&in, what == 1);
	return 0;
}
