/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of srun --multi-prog, sound and damaged. */
#include "unit.h"


#include "multi_prog.h"

#define RANKS 6

/* As digits, by rank; "" when not all ranks have an application. */
static const char *read_text(const char *text)
{
	static char digits[RANKS + 1];
	uint32_t apps[RANKS];

	if (!multi_prog_read(apps, RANKS, text))
		return "";
	for (int i = 0; i < RANKS; i++)
		digits[i] = (char)('0' + apps[i]);
	return digits;
}

TEST(lines_are_numbered)
{
	assert_string_equal(read_text("0-5 a"), "000000");
	assert_string_equal(read_text("1,3-4 a first\n0,2 b\n* c\n"), "101002");
	assert_string_equal(read_text("5 a\n4 b\n3 c\n2 d\n1 e\n0 f"), "543210");
}

TEST(other_lines_are_not)
{
	assert_string_equal(read_text("# 0 x\n\n \t\r\n0-2 a\n  # y\n\t3-5 b\n"), "000111");
	assert_string_equal(read_text("0-2 a \\\n3 is no rank\n3-5 b"), "000111");
	assert_string_equal(read_text("# goes on \\\n0-5 x\n0-5 a\n"), "000000");
	assert_string_equal(read_text("0-2 a \\\n\\\n0-5\n* b"), "000111");
	assert_string_equal(read_text("* a \\"), "000000");
	assert_string_equal(read_text("* a \\\n"), "000000");
}

TEST(the_first_line_has_a_rank)
{
	assert_string_equal(read_text("2 a\n* b\n* c\n"), "110111");
}

TEST(ranks_that_do_not_exist)
{
	assert_string_equal(read_text("0-99 a"), "000000");
	assert_string_equal(read_text("6,7-9 a\n* b"), "111111");
	assert_string_equal(read_text("0-4294967295 a"), "000000");
	assert_string_equal(read_text("4294967296-99999999999999999999999 a\n* b"),
			    "111111");
}

TEST(invalid_ranges_are_rejected)
{
	assert_string_equal(read_text("3-1 a\n* b"), "111111");
	assert_string_equal(read_text("x,2 a\n* b"), "110111");
	assert_string_equal(read_text("1x,2 a\n* b"), "110111");
	assert_string_equal(read_text("0-3x,2 a\n* b"), "110111");
	assert_string_equal(read_text("0--3,2- a\n* b"), "111111");
	assert_string_equal(read_text("1-2-3 a\n* b"), "111111");
	assert_string_equal(read_text("0- 3 a\n* b"), "011111"); /* 0 to nothing: 0 */
	assert_string_equal(read_text(",,2,, a\n* b"), "110111");
	assert_string_equal(read_text("** a\n*1 b\n* c"), "222222");
	assert_string_equal(read_text("0x3 a\n+1 b\n* c"), "222222");
}

TEST(ranks_without_a_line)
{
	assert_string_equal(read_text(""), "");
	assert_string_equal(read_text("\n\\\n"), "");
	assert_string_equal(read_text("0-4 a"), "");
	assert_string_equal(read_text("\xff\xfe\x01 a"), "");
}

/* A range costs as much as its ranks do: few bytes must not keep slurmstepd busy. */
TEST(too_many_ranges)
{
	char text[64 * 8 + 1];

	for (int i = 0; i < 64; i++)
		memcpy(text + 8 * i, "0-5 a\n\n\n", 9);
	assert_string_equal(read_text(text), "");
	for (int i = 0; i < 64; i++)
		memcpy(text + 8 * i, i ? "9,9,9,9," : "* a\n9,9,", 9);
	assert_string_equal(read_text(text), "");
	assert_string_equal(read_text("0 a\n1 a\n2 a\n3 a\n4 a\n5 a\n* b"), "012345");
}
