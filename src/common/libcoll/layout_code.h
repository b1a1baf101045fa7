/* SPDX-License-Identifier: BSD-3-Clause */
/* A layout as bytes. */
#ifndef PMI2X_LAYOUT_CODE_H
#define PMI2X_LAYOUT_CODE_H

#include "libcoll/layout.h"
#include "libutil/coder.h"

/*
 * The layout that is read belongs to the caller: layout_destroy; NULL after an error
 * (-EPROTO, too).
 */
void code_layout(struct coder *c, struct layout **l);

#endif
