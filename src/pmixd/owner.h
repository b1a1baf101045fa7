/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose process is at the other end of a connection over the loopback device. */
#ifndef PMI2X_PMIXD_OWNER_H
#define PMI2X_PMIXD_OWNER_H

#include <stdint.h>

/*
 * The user who made the socket that the TCP connection `fd`, of IPv4, leads to, as the
 * kernel says. 0; -ENOENT: it is closed already, or not of this machine; or another
 * negative errno.
 */
int owner_of_peer(int fd, uint32_t *uid);

/* The same from the text of /proc/net/tcp, where the kernel has no sock_diag. */
int owner_of_peer_in(const char *path, int fd, uint32_t *uid);

#endif
