/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI_process_mapping: "(vector,(first,n,ppn),...)": ppn consecutive ranks on
 * each of n consecutive nodes from node `first` on, block after block.
 */
#ifndef PMI2X_MAPPING_H
#define PMI2X_MAPPING_H

#include "libcoll/layout.h"

#define MAPPING_MAX 1024 /* bytes, NUL included: longer ones break clients */

/*
 * The mapping of a layout in its most compact form, as a malloc'ed string the
 * caller frees; NULL when it does not fit in MAPPING_MAX bytes (leave the
 * attribute out; never cut) or there is no memory. The nodes are numbered by
 * position. Never says that ranks share a node when they do not, or the reverse.
 */
char *mapping_create(const struct layout *l);

#endif
