/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Instructions of a seccomp filter. Between calls of filter_add_* the number of the
 * system call is loaded. One thread.
 */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#define FILTER_CODE_MAX 512 /* instructions of the longest filter */
#define FILTER_ANY_BIT 0xffffffffu

/* The low half of an argument, masked, has this value. A mask of 0: any has. */
struct filter_test {
	unsigned int argument;
	uint32_t mask, value;
};

/* A call both of whose tests are right; several lines for one call. */
struct filter_condition {
	int number;
	struct filter_test tests[2];
};

#define FILTER_IS(argument, value) { { argument, FILTER_ANY_BIT, value } }

/* A call that fails with this error. */
struct filter_refusal {
	int number, error;
};

struct filter_program {
	struct sock_filter code[FILTER_CODE_MAX];
	unsigned short len;
};

/* Calls of another architecture get `action`. */
void filter_begin(struct filter_program *p, uint32_t action);
void filter_add_number(struct filter_program *p, int number, uint32_t action);
void filter_add_condition(struct filter_program *p, const struct filter_condition *c,
			  uint32_t action);
/* Calls whose number has any of these bits. */
void filter_add_bits(struct filter_program *p, uint32_t bits, uint32_t action);
/* All other calls. */
void filter_end(struct filter_program *p, uint32_t action);

/*
 * For this thread and all that it makes, for good; no_new_privs must be set. 0;
 * -ENOSYS: the kernel has no filters, this processor has no table of numbers here, or
 * this is a sanitizer's build; or another negative errno.
 */
int filter_apply(const struct filter_program *p);
