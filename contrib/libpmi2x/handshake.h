/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process and its server get to know each other. */
#pragma once

struct job;

/*
 * Agree on a wire and on the extension, fill in rank, size and the rest, map the
 * results region. s->conn is open. 0 or an error of the connection; -EPROTO
 * when the server says what cannot be.
 */
int handshake(struct job *job);
