/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that every unit test includes: cmocka and what it needs before it. */
#ifndef PMI2X_UNIT_H
#define PMI2X_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Skips the case in an emulator of another processor, which does without what is named
   (testsuite/cross). */
#define NOT_EMULATED(what) \
	do { \
		if (getenv("PMI2X_EMULATOR")) { \
			print_message("not in the emulator: " what "\n"); \
			skip(); \
		} \
	} while (0)

#endif
