/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A script for launchers that start processes all of one command: it starts those of a
 * spawn, as a shell that chooses by PMI_RANK, and sees to the info keys wdir, path and
 * env.
 */
#pragma once

#include <stdbool.h>

#include "libpmi/spawn.h"
#include "libutil/buf.h"

/* False: its one program can be executed as it is. */
bool spawn_wants_script(const struct spawn_request *r);
/* Append it, for the option -c of a shell. Errors of buf_append. */
int spawn_script(struct buf *b, const struct spawn_request *r);
