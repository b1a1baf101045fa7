/* SPDX-License-Identifier: BSD-3-Clause */
/* Time limits as people write them. */
#include "unit.h"

#include "dvm/cli/duration.h"

#define DAYS(n) ((uint64_t)(n) * 86400)
#define MAX DAYS(365)

TEST(times_are_read_as_by_srun_and_with_units)
{
	static const struct {
		const char *text;
		uint64_t seconds;
	} times[] = {
		{ "0", 0 }, { "10", 600 }, { "1:30", 90 }, { "1:99", 159 },
		{ "2:03:04", 7384 }, { "1-0", DAYS(1) }, { "1-12", DAYS(1) + 43200 },
		{ "1-00:30", DAYS(1) + 1800 }, { "1-00:00:00", DAYS(1) },
		{ "2-01:02:03", DAYS(2) + 3723 }, { "30s", 30 }, { "10m", 600 },
		{ "2h", 7200 }, { "1d", DAYS(1) }, { "1d2h3m4s", DAYS(1) + 7384 },
		{ "1h30m", 5400 }, { "365d", MAX },
	};
	uint64_t seconds;

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		assert_true(duration_parse(times[i].text, MAX, &seconds));
		assert_int_equal(seconds, times[i].seconds);
	}
}

TEST(other_texts_and_longer_times_are_rejected)
{
	static const char *const wrong[] = {
		"", "-1", " 1", "1 ", "1:", ":1", "1:2:3:4", "1-", "1-2:3:4:5", "1x", "m",
		"30m1h", "1m1m", "1m1", "1.5h", "1-2h", "0x10", "366d", "366-0", "525601",
		"4294967296", "18446744073709551616", "18446744073709551615d",
		"307445734561825861", "365d1s",
	};
	uint64_t seconds = 42;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		if (duration_parse(wrong[i], MAX, &seconds))
			fail_msg("\"%s\" is a time", wrong[i]);
	assert_int_equal(seconds, 42);
}
