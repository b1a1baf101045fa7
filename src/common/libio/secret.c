/* SPDX-License-Identifier: BSD-3-Clause */
/* The secret of a step: making it, proofs by HMAC, and the ports it hides. */
#include "libio/secret.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Idempotent and thread-safe; negative when the system gives no randomness. */
static int sodium_ready(void)
{
	return sodium_init() < 0 ? -EIO : 0;
}

int secret_create(struct secret *s)
{
	int rc = sodium_ready();

	if (!rc)
		randombytes_buf(s->bytes, sizeof(s->bytes));
	return rc;
}

int nonce_create(uint8_t nonce[NONCE_BYTES])
{
	int rc = sodium_ready();

	if (!rc)
		randombytes_buf(nonce, NONCE_BYTES);
	return rc;
}

void secret_format(const struct secret *s, char text[SECRET_TEXT_BYTES])
{
	sodium_bin2hex(text, SECRET_TEXT_BYTES, s->bytes, sizeof(s->bytes));
}

int secret_parse(struct secret *s, const char *text)
{
	size_t len;

	if (strnlen(text, SECRET_TEXT_BYTES) != SECRET_TEXT_BYTES - 1)
		return -EINVAL;
	if (sodium_hex2bin(s->bytes, sizeof(s->bytes), text,
			   SECRET_TEXT_BYTES - 1, NULL, &len, NULL) ||
	    len != sizeof(s->bytes)) {
		secret_forget(s);
		return -EINVAL;
	}
	return 0;
}

void secret_forget(struct secret *s)
{
	sodium_memzero(s, sizeof(*s));
}

void secret_hide(const struct secret *s)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)s / page * page;
	uintptr_t end = (uintptr_t)(s + 1);

	madvise((void *)first, end - first, MADV_DONTDUMP);
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

uint16_t secret_port(const struct secret *s, uint32_t index, uint16_t first,
		     uint16_t last)
{
	static const char purpose[] = "pmi2x port";
	uint64_t size = last >= first ? (uint64_t)last - first + 1 : 1;
	uint8_t hash[PROOF_BYTES];
	uint64_t start = 0;

	proof_create(s, purpose, sizeof(purpose), hash);
	for (int i = 0; i < 4; i++)
		start = start << 8 | hash[i];
	return first + (start + index) % size;
}
