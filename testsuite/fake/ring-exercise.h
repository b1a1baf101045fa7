/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Definitions that the two halves of ring-exercise share: what holds, and what goes
 * wrong.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "pmi2x_allgather.h"

extern int rank, size;
extern pmi2x_ring *ring;

/* Say what is wrong at this rank, and exit. */
void die(const char *what, const char *text) __attribute__((noreturn));
/* As above, for an error code of a call on the ring. */
void check(int code, const char *what);
/* n bytes, and one more; never NULL. */
void *allocate(size_t n);

/* For leaks: entries of a directory; shared mappings of rings. */
int count_entries(const char *path);
int count_maps(void);

/* Form the ring, over what RING_EXPECT names. */
void create(void);
/* Everything that a ring can do. */
void all_of_it(void);

/* ---- ring-fault.c ---- */

/* Let something go wrong at rank `who`. 0, or 2: there is no such fault. */
int ring_fault(const char *name, int who);

/*
 * Break the links of this process as if the fabric had; both processes go on. A
 * program that knows more than sockets brings its own.
 */
void break_links(pmi2x_ring *r);
