/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A text form for any bytes, for servers that carry text only, cut at a ';' or
 * a space, or refuse values over 1,024 bytes.
 *
 * Text that such servers carry stays as it is. Anything else becomes
 * "%b64:<length>:<base64 without padding>", which may be cut into pieces of TEXT_PIECE
 * bytes and joined again. Pure functions.
 */
#pragma once

#include <stddef.h>

#include "wire.h"

#define TEXT_PIECE 960 /* bytes that every server carries as one value */

/* The text form of `len` bytes. 0 or -ENOMEM. */
int text_encode(const void *data, size_t len, struct value *out);

/*
 * The length that the whole text has, told from its first piece: `len` when it
 * stands for itself. A NUL is behind it. -EPROTO when its head is not what text_encode writes.
 */
long text_length(const char *first, size_t len);

/* Replace a whole text by the bytes it stands for. 0, -EPROTO or -ENOMEM. */
int text_decode(struct value *v);

/* True: the value looks like the encoded form. */
int text_is_marked(const void *data, size_t len);
