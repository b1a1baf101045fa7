/* SPDX-License-Identifier: BSD-3-Clause */
/* The seeded hash: who does not know the seed cannot choose names that collide. */
#include "unit.h"

#include <stdio.h>

#include "libutil/hash.h"

#define BUCKETS 1024
#define NAMES 256
#define FULL 8 /* names of 256 in one of 1,024 buckets: by chance, never */

/* The next name from this number on that falls into bucket 0 without a seed. */
static unsigned next_name(unsigned from, char name[16])
{
	do
		snprintf(name, 16, "%u", from++);
	while (hash_seeded(0, name, strlen(name)) % BUCKETS);
	return from;
}

static unsigned fullest_bucket(uint64_t seed)
{
	unsigned count[BUCKETS] = { 0 }, next = 0, most = 0;
	char name[16];

	for (int i = 0; i < NAMES; i++) {
		unsigned *c;

		next = next_name(next, name);
		c = &count[hash_seeded(seed, name, strlen(name)) % BUCKETS];
		++*c;
		most = *c > most ? *c : most;
	}
	return most;
}

TEST(a_seed_spreads_names_chosen_to_collide)
{
	assert_int_equal(fullest_bucket(0), NAMES);
	assert_true(fullest_bucket(1) < FULL);
	assert_true(fullest_bucket(UINT64_C(0x9e3779b97f4a7c15)) < FULL);
}
