/* SPDX-License-Identifier: BSD-3-Clause */
/* The process at the other end of a unix socket. */
#pragma once

struct ucred;

/*
 * The process that connected, or that made the pair, as the kernel noted it then: it
 * may have ended, or have handed its end on. `out` is a struct ucred of
 * <sys/socket.h> with _GNU_SOURCE. 0 or a negative errno. Any thread.
 */
int peer_credentials(int fd, struct ucred *out);
