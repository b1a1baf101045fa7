/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input of a command, for its tasks. */
#pragma once

#include <jansson.h>

/*
 * Read all of it, as a text in which each byte is the character of its number. command: to
 * name it if the input is too long for tasks, which ends the program.
 */
json_t *standard_input_read(const char *command);
