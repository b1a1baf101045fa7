/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Publish and look-up between what libpmix hands over and libpmi/names.h. Requests are
 * made in libpmix's thread. Directives are those of PMIx: range, persistence (first-read
 * is known, all else is until the step ends), wait and timeout; others are ignored, unless
 * the client says that they are required.
 */
#pragma once

#include "helpers/pmixd/library.h"
#include "libpmi/names.h"

/*
 * `request`, which is made here, is the caller's to free; with any result. Errors are
 * those of PMIx: what is wrong, too much, or not supported.
 */
pmix_status_t names_publish(struct buf *request, const struct library *l,
			    const pmix_info_t info[], size_t ninfo);
/* UNPUBLISH or LOOKUP of keys, a list that ends with NULL, or NULL for none. */
pmix_status_t names_ask(struct buf *request, enum names_op op, char **keys,
			const pmix_info_t info[], size_t ninfo);

/*
 * The names that were looked up, as libpmix wants them; free it with names_free_found.
 * NULL: it is invalid, or there is no memory.
 */
pmix_pdata_t *names_found(const struct library *l, const struct names_answer *a);
void names_free_found(const struct library *l, pmix_pdata_t *found, size_t count);
