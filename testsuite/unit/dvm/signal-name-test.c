/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals as people name them. */
#include "unit.h"

#include <signal.h>

#include "dvm/cli/signal_name.h"

TEST(numbers_and_names_are_read)
{
	static const struct {
		const char *text;
		uint32_t number;
	} all[] = {
		{ "15", SIGTERM }, { "TERM", SIGTERM }, { "SIGTERM", SIGTERM }, { "int", SIGINT },
		{ "sigusr1", SIGUSR1 }, { "64", 64 }, { "1", 1 },
	};
	uint32_t number;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		assert_true(signal_take(all[i].text, &number));
		assert_int_equal(number, all[i].number);
	}
}

TEST(other_words_are_rejected)
{
	static const char *const wrong[] = {
		"", "SIG", "0", "65", "-9", "4294967305", "TER", "TERMS", "SIG9",
	};
	uint32_t number;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(signal_take(wrong[i], &number));
}
