/* SPDX-License-Identifier: BSD-3-Clause */
/* Proofs of a secret, by libsodium. */
#include "libio/proof.h"

#include <errno.h>
#include <sodium.h>

/* Idempotent and thread-safe; negative when the system gives no randomness. */
static int sodium_ready(void)
{
	return sodium_init() < 0 ? -EIO : 0;
}

int nonce_create(uint8_t nonce[NONCE_BYTES])
{
	int rc = sodium_ready();

	if (!rc)
		randombytes_buf(nonce, NONCE_BYTES);
	return rc;
}

void proof_create(const struct secret *s, const void *data, size_t len,
		  uint8_t proof[PROOF_BYTES])
{
	_Static_assert(crypto_auth_hmacsha256_BYTES == PROOF_BYTES, "proof");
	_Static_assert(crypto_auth_hmacsha256_KEYBYTES == SECRET_BYTES, "key");

	crypto_auth_hmacsha256(proof, data, len, s->bytes);
}

bool proof_check(const struct secret *s, const void *data, size_t len,
		 const uint8_t proof[PROOF_BYTES])
{
	uint8_t right[PROOF_BYTES];
	bool same;

	proof_create(s, data, len, right);
	same = sodium_memcmp(right, proof, PROOF_BYTES) == 0;
	sodium_memzero(right, sizeof(right));
	return same;
}
