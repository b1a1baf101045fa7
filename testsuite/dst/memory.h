/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of the simulated processes: malloc and mmap of all that is linked are
 * wrapped, so that it is known whose each block is.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "testsuite/dst/world.h"

struct file;

/* A mapping of a memory object. */
struct mapping {
	struct mapping *next;
	char *at;
	size_t len;
	struct file *file;
	off_t offset;
};

/* Everything of a process that has been killed. */
void memory_free_all(struct process *p);
/* Bytes that it has not freed, in how many blocks. */
size_t memory_left(const struct process *p, unsigned *blocks);
/* The mapping at an address of the running process. NULL: nothing. */
const struct mapping *memory_mapping(const void *at);

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__real_mmap(void *at, size_t len, int protection, int flags, int fd,
		  off_t offset);
int __real_munmap(void *at, size_t len);
