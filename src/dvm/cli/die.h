/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm: ending the program with a message for the user. */
#pragma once

/* Print "pmi2x-dvm: ..." and exit: 1, or 2 for what the user has asked wrongly. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void die_usage(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));
