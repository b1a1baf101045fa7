/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The secret of a step. Needs the C library only, for slurmstepd loads no other; what
 * proves the secret is in proof.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SECRET_BYTES 32
#define SECRET_TEXT_BYTES (2 * SECRET_BYTES + 1) /* hexadecimal, with its NUL */

struct secret {
	uint8_t bytes[SECRET_BYTES];
};

int secret_create(struct secret *s);                /* random; 0 or -EIO */
int port_seed_create(uint64_t *seed);               /* the same; seeded_port */
int run_create(uint32_t *run); /* the same: no secret, a name */
void secret_format(const struct secret *s, char text[SECRET_TEXT_BYTES]);
int secret_parse(struct secret *s, const char *text); /* 0 or -EINVAL */
void secret_forget(struct secret *s);               /* overwrite it */
/*
 * Leave the pages that hold it out of core dumps, where the kernel can: for the place
 * where a secret stays.
 */
void secret_hide(const struct secret *s);
