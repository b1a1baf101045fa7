/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How clients come to libpmix, which cannot be given a socket: it makes a TCP socket
 * of its own and listens on it. The program has functions listen and accept of its own,
 * which the library finds before the C library's. The library polls the hook in place of
 * its socket, and accepts connections there that the program has accepted and checked
 * before. No port is open but those that the program was given.
 *
 * It also has functions of its own to read and write, which note which client waits for an
 * answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Make it, before the library is initialized. There is one in a process. 0 or a
 * negative errno.
 */
int accept_hook_make(void);

/* True: libpmix listens through the hook. Otherwise no client could ever connect. */
bool accept_hook_is_used(void);

/*
 * Hand a connection to the library; it is the hook's from here on, in any case. Does not
 * block. 0 or a negative errno.
 */
int accept_hook_let_in(int fd);

/*
 * When the library read the first bytes from this connection since it last wrote to it, in
 * ms of CLOCK_MONOTONIC; 0: it has not. Any thread.
 */
int64_t accept_hook_asks_since(int fd);
