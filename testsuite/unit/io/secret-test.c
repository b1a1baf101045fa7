/* SPDX-License-Identifier: BSD-3-Clause */
/* Secrets, seeds and proofs: text form, what a proof binds, ports of a step. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libio/listener_socket.h"
#include "libio/proof.h"

TEST(text_form_round_trips)
{
	struct secret a, b;
	char text[SECRET_TEXT_BYTES];

	assert_int_equal(secret_create(&a), 0);
	secret_format(&a, text);
	assert_int_equal(strlen(text), 2 * SECRET_BYTES);
	assert_int_equal(secret_parse(&b, text), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	secret_forget(&a);
	memset(&b, 0, sizeof(b));
	assert_memory_equal(&a, &b, sizeof(a));
}

TEST(other_text_is_refused)
{
	char text[SECRET_TEXT_BYTES + 1];
	struct secret s;

	memset(text, 'a', sizeof(text));
	text[SECRET_TEXT_BYTES] = '\0';
	assert_int_equal(secret_parse(&s, text), -EINVAL); /* too long */
	text[SECRET_TEXT_BYTES - 1] = '\0';
	assert_int_equal(secret_parse(&s, text), 0);
	text[7] = 'g';
	assert_int_equal(secret_parse(&s, text), -EINVAL);
	text[7] = '\0';
	assert_int_equal(secret_parse(&s, text), -EINVAL);
	assert_int_equal(secret_parse(&s, ""), -EINVAL);
}

TEST(a_proof_needs_the_secret_and_the_data)
{
	struct secret a, b;
	uint8_t proof[PROOF_BYTES];

	secret_create(&a);
	secret_create(&b);
	proof_create(&a, "data", 4, proof);
	assert_true(proof_check(&a, "data", 4, proof));
	assert_false(proof_check(&b, "data", 4, proof));
	assert_false(proof_check(&a, "datb", 4, proof));
	assert_false(proof_check(&a, "dat", 3, proof));
	proof[PROOF_BYTES - 1] ^= 1;
	assert_false(proof_check(&a, "data", 4, proof));
}

TEST(nodes_of_a_step_have_ports_of_their_own)
{
	const uint64_t seed = UINT64_MAX - 5; /* a sum must not run over */
	char seen[100] = { 0 };

	for (uint32_t i = 0; i < 100; i++) {
		uint16_t port = seeded_port(seed, i, 20000, 20099);

		assert_in_range(port, 20000, 20099);
		assert_false(seen[port - 20000]++);
	}
	assert_int_equal(seeded_port(seed, 100, 20000, 20099),
			 seeded_port(seed, 0, 20000, 20099));
	assert_int_not_equal(seeded_port(seed, 0, 20000, 20099),
			     seeded_port(seed - 1, 0, 20000, 20099));
	assert_int_equal(seeded_port(seed, UINT32_MAX, 7, 7), 7);
	assert_in_range(seeded_port(seed, UINT32_MAX, 0, 65535), 0, 65535);
}

TEST(random_bytes_differ)
{
	struct secret a, b;
	uint64_t x, y;
	uint32_t run, other;

	assert_int_equal(secret_create(&a) | secret_create(&b), 0);
	assert_memory_not_equal(&a, &b, sizeof(a));
	assert_int_equal(port_seed_create(&x) | port_seed_create(&y), 0);
	assert_true(x != y);
	assert_int_equal(run_create(&run) | run_create(&other), 0);
	assert_true(run != other);
}

/* True: the kernel leaves the page at `at` out of core dumps. */
static bool is_hidden(const void *at)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	unsigned long first, end;
	bool here = false, hidden = false;
	char line[4096];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			here = (unsigned long)at >= first &&
			       (unsigned long)at < end;
		if (here && !strncmp(line, "VmFlags:", 8))
			hidden = strstr(line, " dd") != NULL;
	}
	fclose(maps);
	return hidden;
}

TEST(no_core_dump_has_what_is_hidden)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* A secret may lie on two pages. */
	struct secret *s = (struct secret *)(memory + 2 * page - 7);

	NOT_EMULATED("flags of mapped memory");
	assert_true(memory != MAP_FAILED);
	secret_hide(s);
	assert_false(is_hidden(memory));
	assert_true(is_hidden(memory + page));
	assert_true(is_hidden(memory + 2 * page));
	assert_false(is_hidden(memory + 3 * page));
	munmap(memory, 4 * page);
}
