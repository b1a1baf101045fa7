/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of a TCP connection whose other side may die with its machine. */
#pragma once

#include <stdint.h>

/*
 * The connection ends with ETIMEDOUT when the other side's machine has not answered for
 * `ms`: neither what was sent, nor a probe while nothing is. Sockets of other kinds do
 * not change.
 */
void tcp_end_without_answer(int fd, uint32_t ms);
/* Sends each write at once (TCP_NODELAY). */
void tcp_send_at_once(int fd);
