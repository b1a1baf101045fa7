/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The look-up study: one key-value image, one writer process and N reading
 * processes, and four ways to keep them apart ("A Scalable PMIx Database",
 * figures 3 and 4):
 *
 *   rwlock   a process-shared pthread read-write lock around each look-up
 *   2n       two mutexes for each reader, the scheme of figure 4
 *   none     no coordination: the bound, with values torn by the writer
 *   pmi2x    immutable generations, by the code that ranks use (libshm)
 *
 * The first three look up in an image that the writer changes in place; all
 * four hash a key, find it, and copy its value out. Values show by themselves
 * whether they are whole, see value_write. Functions return 0 or a negative
 * errno unless said otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOKUP_READERS_MAX 4096u
#define LOOKUP_KEYS_MAX 1048576u
#define LOOKUP_BYTES_MIN 8u
#define LOOKUP_BYTES_MAX 65536u
#define LOOKUP_RATE_MAX 100000u /* updates a second */
#define LOOKUP_MS_MAX 60000u
#define LOOKUP_KEY_BYTES 16u    /* NUL included */

struct lookup_way;

struct lookup_options {
	const struct lookup_way *way;
	uint32_t readers;
	uint32_t keys;
	uint32_t bytes; /* of a value; a multiple of 8 */
	uint32_t rate;  /* updates a second; 0: no writer */
	uint32_t ms;    /* measured time */
};

/* The store, and what a way keeps of its own. */
struct lookup_store {
	const struct lookup_options *options;
	char (*keys)[LOOKUP_KEY_BYTES];
	void *state;
};

/* A way to coordinate. The writer creates; readers are forked, then attach. */
struct lookup_way {
	const char *name;
	bool whole; /* a reader never sees half of an update */
	int (*create)(struct lookup_store *s);
	int (*attach)(struct lookup_store *s);
	/* Copy the value of a key out; false: it is not there. */
	bool (*get)(struct lookup_store *s, uint32_t reader, uint32_t key,
		    unsigned char *out);
	int (*put)(struct lookup_store *s, uint32_t key,
		   const unsigned char *value);
};

extern const struct lookup_way lookup_rwlock, lookup_2n, lookup_none,
	lookup_pmi2x;

/* ---- lookup_image.c ---- */

/* A fence image with version 0 of all keys; malloc'ed. */
int image_of(const struct lookup_store *s, void **image, size_t *len);
/* An image with one record. */
int image_of_one(const struct lookup_store *s, uint32_t key,
		 const unsigned char *value, void **image, size_t *len);

/* A value that names its key and version in every word. */
void value_write(unsigned char *value, uint32_t bytes, uint32_t key,
		 uint32_t version);
/* The version, or -1: parts of different values, or of another key's. */
int64_t value_check(const unsigned char *value, uint32_t bytes, uint32_t key);

/* ---- lookup_run.c ---- */

struct lookup_result {
	uint64_t lookups;   /* of all readers */
	double cpu_ns;      /* mean CPU time of a look-up */
	double wall_ns;     /* the same by the clock, waiting included */
	uint64_t torn;      /* values that were not whole; each was checked */
	uint64_t updates;
	double update_us;   /* mean time of an update by the clock */
};

/* -EILSEQ: a reader got a wrong value, a torn one where none may be, or an
 * older one than before. -ECHILD: a reader died. */
int lookup_run(const struct lookup_options *o, struct lookup_result *result);
