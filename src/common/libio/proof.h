/* SPDX-License-Identifier: BSD-3-Clause */
/* Proofs that somebody knows the secret of a step. */
#pragma once

#include <stdbool.h>

#include "libio/secret.h"

#define PROOF_BYTES 32
#define NONCE_BYTES 24

int nonce_create(uint8_t nonce[NONCE_BYTES]); /* random; 0 or -EIO */

/* HMAC over `len` bytes. */
void proof_create(const struct secret *s, const void *data, size_t len,
		  uint8_t proof[PROOF_BYTES]);
/* Constant-time comparison of a proof with the right one. */
bool proof_check(const struct secret *s, const void *data, size_t len,
		 const uint8_t proof[PROOF_BYTES]);
