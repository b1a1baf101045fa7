/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first message of a PMIx client: which rank it is. The form is that of PMIx 2 to
 * 6, of all that they send over TCP: a header (i32, u32, u32 length, u32), then the
 * name of a security module, u32 length and bytes of a credential, u8 kind of process,
 * and of a client its namespace and u32 rank. Lengths in the header are of the
 * machine's byte order, the others of the network's; names end with a NUL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLIENT_HELLO_MAX 4096 /* bytes that are looked at */

struct client_hello {
	const char *nspace; /* in what was read */
	uint32_t rank;
	bool has_uid; /* the client says of which user it is, as its user namespace has it: */
	uint32_t uid;
};

/*
 * 1: it is a client; 0: more bytes are needed; -EPROTO: it is no client, such as a tool,
 * or its form is not known.
 */
int client_hello_read(const void *bytes, size_t len, struct client_hello *out);
