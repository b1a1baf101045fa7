/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedule of the ring: properties that hold for 1 to 1,000 places. */
#include "unit.h"


#include "schedule.h"

#define PLACES_MAX 1000
#define TOTAL 1001 /* bytes of a block, odd so that the halves differ */

static uint32_t neighbour(uint32_t n, uint32_t place, enum ring_side side)
{
	return (place + (side == SIDE_RIGHT ? 1 : n - 1)) % n;
}

/* With both neighbours used at once nobody can be ready earlier. */
TEST(steps_are_half_the_places)
{
	for (uint32_t n = 1; n <= PLACES_MAX; n++)
		assert_int_equal(schedule_steps(n), n - 1 - (n - 1) / 2);
}

TEST(each_send_has_a_matching_receive)
{
	for (uint32_t n = 2; n <= PLACES_MAX; n++)
		for (uint32_t s = 0; s < schedule_steps(n); s++)
			for (uint32_t p = 0; p < n; p += 1 + n / 50)
				for (int side = 0; side < SIDES; side++)
					assert_int_equal(
						schedule_sends(n, p, side, s),
						schedule_receives(n,
							neighbour(n, p, side),
							other_side(side), s));
}

/* A place has what it sends: its own, or what came in the step before. */
TEST(only_what_is_there_is_sent)
{
	for (uint32_t n = 2; n <= PLACES_MAX; n++)
		for (uint32_t p = 0; p < n; p += 1 + n / 50)
			for (int side = 0; side < SIDES; side++) {
				assert_int_equal(
					schedule_sends(n, p, side, 0), p);
				for (uint32_t s = 1; s < schedule_steps(n); s++)
					assert_int_equal(
						schedule_sends(n, p, side, s),
						schedule_receives(n, p,
							other_side(side),
							s - 1));
			}
}

/* Bytes that `place` receives of every block, and each byte just once. */
static void check_place(uint32_t n, uint32_t place)
{
	static struct schedule_range have[PLACES_MAX];

	memset(have, 0, sizeof(have));
	have[place].end = TOTAL;
	for (uint32_t s = 0; s < schedule_steps(n); s++)
		for (int side = 0; side < SIDES; side++) {
			uint32_t b = schedule_receives(n, place, side, s);
			struct schedule_range r = schedule_bytes(n,
				other_side(side), s, TOTAL);

			assert_true(b < n && r.first < r.end);
			if (have[b].end == 0) {
				have[b] = r;
				continue;
			}
			/* The other half: they meet and do not overlap. */
			assert_true(have[b].end == r.first ||
				    r.end == have[b].first);
			have[b].first = 0;
			have[b].end = TOTAL;
		}
	for (uint32_t b = 0; b < n; b++)
		assert_true(have[b].first == 0 && have[b].end == TOTAL);
}

TEST(everybody_gets_every_byte_once)
{
	for (uint32_t n = 1; n <= PLACES_MAX; n++)
		for (uint32_t p = 0; p < n; p += 1 + n / 20)
			check_place(n, p);
}

/* No link carries more than any other, but for the odd byte. */
TEST(both_directions_carry_the_same)
{
	for (uint32_t n = 2; n <= PLACES_MAX; n++) {
		uint64_t bytes[SIDES] = { 0, 0 };

		for (uint32_t s = 0; s < schedule_steps(n); s++)
			for (int side = 0; side < SIDES; side++) {
				struct schedule_range r = schedule_bytes(n,
					side, s, TOTAL);

				bytes[side] += r.end - r.first;
			}
		assert_int_equal(bytes[0] + bytes[1], (n - 1) * TOTAL);
		assert_true(bytes[SIDE_RIGHT] - bytes[SIDE_LEFT] <= 1);
	}
}
