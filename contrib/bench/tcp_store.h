/* SPDX-License-Identifier: BSD-3-Clause */
/* A plain client of PyTorch's TCPStore, as release 1.13 speaks. Errors end the process. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A connection to `port` of `host`, which may begin to listen later. */
int tcp_store_connect(const char *host, const char *port);

void tcp_store_set(int fd, const char *key, const void *value, size_t len);
int64_t tcp_store_add(int fd, const char *key, int64_t number);
/* Returns when the key exists. */
void tcp_store_wait(int fd, const char *key);
/* Into `value`, which has room for `room` bytes. Returns the length of the value. */
size_t tcp_store_get(int fd, const char *key, void *value, size_t room);
