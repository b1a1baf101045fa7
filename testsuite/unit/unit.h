/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that every unit test includes: cmocka and what it needs before it, and tests
   that register themselves:

       TEST(subject_does_this)
       {
               assert_...
       }

   The program runs them in the order of the file (unit-main.c). One that has a main() of its
   own calls unit_run. */
#pragma once

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

struct unit_test {
	struct CMUnitTest test;
	int line;
	struct unit_test *next;
};

/* A test that registers itself, without or with functions that set it up and tear it down,
   which may be NULL and share its state. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, set_up, tear_down) \
	static void name(void **state); \
	__attribute__((constructor)) static void register_##name(void) \
	{ \
		static struct unit_test test = { \
			cmocka_unit_test_setup_teardown(name, set_up, tear_down), \
			__LINE__, \
			NULL, \
		}; \
		unit_register(&test); \
	} \
	static void name(void **state)

/* A test of an object that is made for it, and declared as the parameter. A program that has
   several of one kind names the kind:

       #define BED_TEST(name) TEST_ON(name, struct bed *b, bed_create(100))
       BED_TEST(bed_is_empty_at_first)
       {
               assert_int_equal(b->count, 0);
       }

   The function that makes the object calls unit_at_end, so that it ends with the test. */
#define TEST_ON(name, parameter, made) \
	static void name##_on(parameter); \
	TEST(name) \
	{ \
		name##_on(made); \
	} \
	static void name##_on(parameter)

void unit_register(struct unit_test *test);

/* Have the running test call end(object) when it is over, also when it fails: the last call
   counts first, also of one object. Returns the object. */
void *unit_at_end(void (*end)(void *object), void *object);
/* End it now. */
void unit_end(void *object);

/* Run all tests between set_up and tear_down, which may be NULL. Without a name they have the
   program's. Returns how many of them failed. */
int unit_run(const char *name, CMFixtureFunction set_up, CMFixtureFunction tear_down);
