/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of cores: counting, joining, and as text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lend/facts.h"

uint32_t lend_cores_count(const struct lend_cores *set);
bool lend_cores_overlap(const struct lend_cores *a, const struct lend_cores *b);
void lend_cores_join(struct lend_cores *set, const struct lend_cores *other);
void lend_cores_add(struct lend_cores *set, uint32_t core);
/* As "0-3,8", in `size` bytes; a longer list ends with "...". `size` is 16 or more. */
void lend_cores_text(const struct lend_cores *set, char *out, size_t size);
