/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions that the tests of the results region share; see region-fixture.c. */
#pragma once

#include "unit.h"

#include "libshm/records.h"
#include "libshm/region.h"
#include "libshm/region_layout.h"

/* Takes the buffer. */
struct payload *finish_fence(struct buf *b);
/* Publish `n` records "<prefix><i>" = "<value>". */
int publish_keys(struct region_writer *w, const char *prefix, int n,
		 const char *value);
struct payload *gather_image(const char *const *values, uint32_t n);
/* A region that ends with its test. */
struct region_writer *new_writer(size_t size);
#define WRITER_TEST(name, size) TEST_ON(name, struct region_writer *w, new_writer(size))
/* A rank's view of it, which ends with the test, too. */
struct region *attach(const struct region_writer *w);
void check_key(const struct region *r, const char *key, const char *expected);
bool has_key(const struct region *r, const char *key);
/* The current view. */
void *view_of(const struct region *r);
