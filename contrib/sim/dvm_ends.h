/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The event "ended", read without making objects of it: the client of 15 million tasks does
 * nothing else. It is compact JSON, as heads write it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dvm_end {
	uint64_t id, instance;
	int64_t code;
	double t[4]; /* seconds since 1970: submitted, placed, started, ended */
};

/* Where a line is read. */
struct dvm_ends {
	const char *at;
};

/* False: it is another event. The line ends with a NUL. */
bool dvm_ends_begin(struct dvm_ends *e, const char *line);
/* The next task. False: there is none, or the line is not compact JSON. */
bool dvm_ends_next(struct dvm_ends *e, struct dvm_end *out);
