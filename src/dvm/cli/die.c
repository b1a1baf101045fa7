/* SPDX-License-Identifier: BSD-3-Clause */
/* Ending the program with a message for the user. */
#include "dvm/cli/die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void say(const char *fmt, va_list ap)
{
	fflush(stdout);
	fputs("pmi2x-dvm: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	exit(1);
}

void die_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	fputs("pmi2x-dvm --help lists commands and options\n", stderr);
	exit(2);
}
