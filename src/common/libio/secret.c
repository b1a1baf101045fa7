/* SPDX-License-Identifier: BSD-3-Clause */
/* The secret of a step: making it, its text, and where it must not stay. */
#include "libio/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "libutil/hex.h"

/* The kernel returns this few bytes whole, or an error. */
static int random_bytes(void *out, size_t len)
{
	ssize_t n;

	do {
		n = getrandom(out, len, 0);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -EIO;
}

int secret_create(struct secret *s)
{
	return random_bytes(s->bytes, sizeof(s->bytes));
}

int port_seed_create(uint64_t *seed)
{
	return random_bytes(seed, sizeof(*seed));
}

int run_create(uint32_t *run)
{
	return random_bytes(run, sizeof(*run));
}

void secret_format(const struct secret *s, char text[SECRET_TEXT_BYTES])
{
	hex_print(s->bytes, sizeof(s->bytes), text);
}

int secret_parse(struct secret *s, const char *text)
{
	if (strnlen(text, SECRET_TEXT_BYTES) == SECRET_TEXT_BYTES - 1 &&
	    !hex_decode(text, sizeof(s->bytes), s->bytes))
		return 0;
	secret_forget(s);
	return -EINVAL;
}

void secret_forget(struct secret *s)
{
	explicit_bzero(s, sizeof(*s));
}

void secret_hide(const struct secret *s)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)s / page * page;
	uintptr_t end = (uintptr_t)(s + 1);

	madvise((void *)first, end - first, MADV_DONTDUMP);
}
