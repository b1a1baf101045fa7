/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process and its server get to know each other. */
#ifndef PMI2X_HANDSHAKE_H
#define PMI2X_HANDSHAKE_H

struct job;

/*
 * Agree on a wire and on the extension, fill in rank, size and the rest, map the
 * results region. s->conn is open. 0 or an error of the connection; -EPROTO
 * when the server says what cannot be.
 */
int handshake(struct job *job);

#endif
