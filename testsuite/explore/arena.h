/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that can be put back: while the arena is on, malloc and its kin take
 * from it (the program is linked with --wrap). So a state of libcoll, whatever
 * it consists of, can be kept, restored, and compared with another one: two
 * states are the same when they differ in nothing but where their blocks lie.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void arena_open(void);
/* Allocations take from the arena from now on, or do not. */
void arena_on(bool on);
/* Forget all blocks. */
void arena_clear(void);
/* Blocks that are not freed. */
size_t arena_live(void);

struct snapshot;

struct snapshot *arena_save(void);
void arena_restore(const struct snapshot *s);
void snapshot_free(struct snapshot *s);

/* A hash of all that can be reached from the block at `root`. */
uint64_t arena_digest(const void *root);
