/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm: how many tasks may fail before no more are started (--max-fails). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct max_fails {
	bool set;
	bool percent; /* limit is one of all tasks */
	bool now;     /* running tasks are ended, too */
	uint32_t limit;
};

/* Read N or N%, and ",now" behind it. False: the text is something else. */
bool max_fails_parse(const char *text, struct max_fails *m);
/*
 * True: more tasks have failed than allowed. whole: no tasks will be added to `all`; before
 * that, a percentage cannot be reached.
 */
bool max_fails_reached(const struct max_fails *m, size_t failed, size_t all, bool whole);
