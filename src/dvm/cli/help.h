/* SPDX-License-Identifier: BSD-3-Clause */
/* The help of pmi2x-dvm. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* True: the word asks for help. */
bool is_help(const char *word);
/* Print all commands and options. */
void help_print_all(FILE *to);
/* Print the lines of a command, and all options. The exit status; errors end the program. */
int help_print(const char *name);
