/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose connections wait at a listening TCP socket of 127.0.0.1, asked before any is
 * accepted: another local user's start nothing.
 */
#ifndef PMI2X_KNOCK_H
#define PMI2X_KNOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Does one of `uid` wait at the socket of that port? Those of others that wait are
 * closed. True also where the kernel does not say whose they are. Reads
 * /proc/net/tcp; does not block.
 */
bool knock_of(int listener, uint16_t port, uid_t uid);

#endif
