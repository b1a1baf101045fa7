/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The secret of a step and what is derived from it. HMAC and random bytes come
 * from libsodium.
 */
#ifndef PMI2X_SECRET_H
#define PMI2X_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_BYTES 32
#define SECRET_TEXT_BYTES (2 * SECRET_BYTES + 1) /* hexadecimal, with its NUL */
#define PROOF_BYTES 32
#define NONCE_BYTES 24

struct secret {
	uint8_t bytes[SECRET_BYTES];
};

int secret_create(struct secret *s);                /* random; 0 or -EIO */
void secret_format(const struct secret *s, char text[SECRET_TEXT_BYTES]);
int secret_parse(struct secret *s, const char *text); /* 0 or -EINVAL */
void secret_forget(struct secret *s);               /* overwrite it */
/*
 * Leave the pages that hold it out of core dumps, where the kernel can: for the place
 * where a secret stays.
 */
void secret_hide(const struct secret *s);
int nonce_create(uint8_t nonce[NONCE_BYTES]);

/* HMAC over `len` bytes. */
void proof_create(const struct secret *s, const void *data, size_t len,
		  uint8_t proof[PROOF_BYTES]);
/* Constant-time comparison of a proof with the right one. */
bool proof_check(const struct secret *s, const void *data, size_t len,
		 const uint8_t proof[PROOF_BYTES]);

/*
 * The port of node `index` (a position): first + (H(secret) + index) modulo the
 * size of the range, so that nodes of one step on one host never collide.
 */
uint16_t secret_port(const struct secret *s, uint32_t index, uint16_t first,
		     uint16_t last);

#endif
