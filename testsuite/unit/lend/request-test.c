/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of PMI2X_LEND, and the place of a rank as text. */
#include "unit.h"

#include <stdbool.h>

#include "lend/request.h"

TEST(known_words_are_requests)
{
	enum lend_request got = LEND_REPORT;

	assert_true(lend_request_parse(NULL, &got));
	assert_int_equal(got, LEND_OFF);
	assert_true(lend_request_parse("", &got));
	assert_int_equal(got, LEND_OFF);
	assert_true(lend_request_parse("Report", &got));
	assert_int_equal(got, LEND_REPORT);
	assert_true(lend_request_parse("report,all", &got));
	assert_int_equal(got, LEND_REPORT_ALL);
	assert_true(lend_request_parse("off", &got));
	assert_int_equal(got, LEND_OFF);
	assert_true(lend_request_parse("on", &got));
	assert_int_equal(got, LEND_ON);
}

TEST(unknown_words_are_named)
{
	static const char *const wrong[] = { "reprot", "report,", "report all", "1", " " };
	enum lend_request got;
	char why[LEND_TEXT_MAX];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(lend_request_parse(wrong[i], &got));
	lend_request_explain("reprot", why);
	assert_string_equal(why, "PMI2X_LEND=reprot is not a value of PMI2X_LEND: "
				 "use on, report, report,all or off");
}

TEST(message_about_a_word_is_short_and_printable)
{
	char word[4096], why[LEND_TEXT_MAX];

	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	memcpy(word, "\n\033[1m", 5);
	lend_request_explain(word, why);
	assert_null(strchr(why, '\n'));
	assert_null(strchr(why, '\033'));
	assert_non_null(strstr(why, "xxx... is not"));
	assert_non_null(strstr(why, "or off"));
}

TEST(factors_from_2_to_8_are_taken)
{
	static const char *const wrong[] = { "0", "1", "9", "2x", "-2", " 2", "22", "two" };
	char why[LEND_TEXT_MAX];
	uint32_t got = 0;

	assert_true(lend_factor_parse(NULL, &got));
	assert_int_equal(got, 2);
	assert_true(lend_factor_parse("", &got));
	assert_int_equal(got, 2);
	assert_true(lend_factor_parse("8", &got));
	assert_int_equal(got, 8);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(lend_factor_parse(wrong[i], &got));
	lend_factor_explain("22\n", why);
	assert_string_equal(why, "PMI2X_LEND_FACTOR=22? is not a number of threads for each core: "
				 "use 2 to 8");
}

TEST(place_survives_its_text)
{
	const struct lend_place place = { 61, 3, 8, 4711, 16, 2, LEND_CORES, true, true };
	struct lend_place got = { 0 };
	char text[LEND_TEXT_MAX];

	lend_place_write(&place, text);
	assert_true(lend_place_read(text, &got));
	assert_int_equal(got.fd, 61);
	assert_int_equal(got.slot, 3);
	assert_int_equal(got.ranks, 8);
	assert_int_equal(got.rank, 4711);
	assert_int_equal(got.cores, 16);
	assert_int_equal(got.factor, 2);
	assert_int_equal(got.mode, LEND_CORES);
	assert_true(got.reports);
	assert_true(got.explains);
}

TEST(damaged_places_are_rejected)
{
	static const char *const wrong[] = { "", "61", "61:0:1:0", "61:0:1:0:0:2:0:1:",
					     "61:0:1:0:0:2:0:1:1x", "-1:0:1:0:0:2:0:0:0",
					     "61:1:1:0:0:2:0:0:0", "61:0:0:0:0:2:0:0:0",
					     "61:0:1:0:0:2:3:0:0", "a:b:c:d:e:f:g:h:i" };
	struct lend_place got;

	assert_false(lend_place_read(NULL, &got));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(lend_place_read(wrong[i], &got));
}
