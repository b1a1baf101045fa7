/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash for tables of names that somebody else chooses. */
#ifndef PMI2X_HASH_H
#define PMI2X_HASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * Of `len` bytes. Names that collide under one seed do not under another: with a
 * random seed that stays in this process nobody can choose such. For uthash's
 * _BYHASHVALUE macros.
 */
uint32_t hash_seeded(uint64_t seed, const void *data, size_t len);

#endif
