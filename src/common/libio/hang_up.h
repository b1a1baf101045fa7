/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing a unix socket whose other end is not trusted. */
#pragma once

/*
 * Close a connected socket, of SOCK_STREAM or of SOCK_SEQPACKET; -1: nothing. *fd is -1
 * afterwards. The peer may have sent descriptors that nobody has received. These are closed
 * with the socket, and the last close of a descriptor can wait without a limit: for
 * SO_LINGER, or for the server of a file. So a socket with anything unread is closed by a
 * thread of its own, for which nobody waits. Without memory for a thread that socket stays
 * open. Any thread; does not block.
 */
void hang_up(int *fd);

/*
 * Hangs up a socket that listens, and the connections that nobody has accepted. No
 * other process goes on listening.
 */
void hang_up_listener(int *fd);
