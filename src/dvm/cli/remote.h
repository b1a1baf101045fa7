/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm: a head on another node. Its address and secret are in a file that only the
 * user can read (bootstrap.h), in a directory that the nodes share. Both ends prove that
 * they know the secret; then frames carry the same lines as the unix socket does, cut
 * anywhere: FRAME_CONTROL_UP to the head, FRAME_CONTROL_DOWN from it.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * Connect to the head of which this file tells. Its descriptor, or a negative errno:
 * -ENOENT there is no file, -EPERM it is not the user's alone, -EPROTO it is none of
 * these, -EPROTONOSUPPORT another version, those of the handshake, or why nobody
 * answers. Blocks, for some seconds.
 */
int remote_connect(const char *file);
/* For people. */
const char *remote_strerror(int error);
/*
 * Receives at most `size` bytes, less frames; left: how many are to come of one, 0
 * first, or NULL: there are none. How many, 0 at the end, or a negative errno. Blocks.
 */
ssize_t remote_receive(int fd, size_t *left, void *at, size_t size);
/* All of it, to a head on another node. 0 or a negative errno. */
int remote_send(int fd, const void *data, size_t len);
/* Sends all as it is, to any socket. */
int remote_send_all(int fd, const void *data, size_t len);
