/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI_process_mapping: "(vector,(first,n,ppn),...)": ppn consecutive ranks on
 * each of n consecutive nodes from node `first` on, block after block.
 */
#pragma once

#include "libcoll/layout.h"

/*
 * Bytes, NUL included. A value of up to 1,024 is legal, but MPICH's client
 * reads the line around it ("cmd=get_result rc=0 msg=success value=...") into
 * 1,024 bytes as well.
 */
#define MAPPING_MAX (1024 - 64)

/*
 * The mapping of a layout, as a malloc'ed string the caller frees; NULL when it
 * does not fit in MAPPING_MAX bytes (leave the attribute out; never cut) or
 * there is no memory. The nodes are numbered by position. Never says that
 * ranks share a node when they do not, or the reverse.
 *
 * Blocks that together cover all ranks, if that fits. Else, when the layout
 * repeats, the blocks of one period: readers that descend from MPICH's start
 * again at the first block as long as ranks are left. Open MPI's reader does
 * not, so the repeated form is the second choice.
 */
char *mapping_create(const struct layout *l);
