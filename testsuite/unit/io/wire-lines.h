/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of the wire reference; a failure ends the test. */
#pragma once

#include "libutil/buf.h"

#define LINE_MAX_BYTES 8192

void section(struct buf *out, const char *name, unsigned version);
void bytes_line(struct buf *out, const char *name, const void *data, size_t len);
/* The bytes of a buffer, which is empty then. */
void buf_line(struct buf *out, const char *name, struct buf *b);

/* The messages of the store. */
void store_section(struct buf *out);
/* Sections of messages between processes of one build. */
void dvm_sections(struct buf *out);
void local_sections(struct buf *out);
