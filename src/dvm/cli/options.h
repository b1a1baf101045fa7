/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that several commands of pmi2x-dvm read by getopt_long. */
#pragma once

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * End for an option of the command argv[0] that getopt_long has refused; `option`: its answer;
 * `options`: all of the command.
 */
void die_option(char **argv, int option, const struct option *options)
	__attribute__((noreturn));
/* The value of an option that is a number; one out of range ends the program. */
uint32_t option_number(const char *option, const char *text, uint32_t min, uint32_t max);
/* The names of --nodelist, a new array; a wrong list ends the program. */
json_t *option_nodelist(const char *text);
/* True: the word has only digits, and some. */
bool is_number(const char *word);
/* The nodes of --local, an option whose value is optional: a number after it belongs to it.
   1 without. */
const char *local_nodes(char **argv, const char *value);
