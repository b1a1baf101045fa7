/* SPDX-License-Identifier: BSD-3-Clause */
/* A layout as bytes. */
#pragma once

#include "libcoll/layout.h"
#include "libutil/coder.h"

/*
 * The layout that is read belongs to the caller: layout_destroy; NULL after an error
 * (-EPROTO, too).
 */
void code_layout(struct coder *c, struct layout **l);
