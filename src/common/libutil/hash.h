/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes: for tables of names that somebody else chooses, and in place of names. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * The hash of `len` bytes. Names that collide under one seed do not under another: with
 * a random seed that stays in this process nobody can choose such. For uthash's
 * _BYHASHVALUE macros.
 */
uint32_t hash_seeded(uint64_t seed, const void *data, size_t len);

#define HASH_NAME_SIZE 16 /* bytes */

/*
 * A hash with enough bits that two names never have the same; on every node the same.
 * An attacker can make two names that do: it is for names that one user chooses.
 */
void hash_name(unsigned char out[HASH_NAME_SIZE], const void *data, size_t len);
