/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of numbers as people write them: 7, 1-10, 0-10:2 (a step), and several of these
 * with commas between them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct number_range {
	uint64_t first, last, step;
	int width; /* digits, if the first has leading zeros; else 0 */
};

/*
 * Takes the next range of a list, and moves *at behind it, to the end of the text if there
 * is none left. Numbers are up to max. False: the list is wrong here.
 */
bool number_list_take(const char **at, uint64_t max, struct number_range *r);
/* True: the whole list is valid, and not empty. */
bool number_list_ok(const char *text, uint64_t max);
