/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of each block of memory; now and then there is none. */
#include "testsuite/dst/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "testsuite/dst/files.h"

#define SPARED 4

struct block {
	struct block *next, **at;
	struct process *owner;
	size_t size;
};

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
void *__wrap_mmap(void *at, size_t len, int protection, int flags, int fd,
		  off_t offset);
int __wrap_munmap(void *at, size_t len);

_Static_assert(sizeof(struct block) % 16 == 0, "blocks stay aligned");

/* ---- blocks ---- */

static void link_block(struct block *b)
{
	struct process *p = b->owner;

	b->next = p->blocks;
	b->at = &p->blocks;
	if (b->next)
		b->next->at = &b->next;
	p->blocks = b;
}

static void unlink_block(struct block *b)
{
	*b->at = b->next;
	if (b->next)
		b->next->at = b->at;
}

/* In an agent, and where its supervisor does its work: who makes that is its host. */
static bool may_refuse(void)
{
	const struct process *p = process_current();

	return task_current() &&
	       (!strncmp(p->name, "agent", 5) ||
		(!strncmp(p->name, "node", 4) && task_current() != p->main));
}

static bool refuses(void)
{
	if (!may_refuse())
		return false;
	if (hardship.spared)
		hardship.spared--;
	else if (draw_once_in(hardship.no_memory))
		hardship.spared = SPARED;
	else
		return false;
	return hardship.spared == SPARED;
}

void *__wrap_malloc(size_t size)
{
	struct block *b = refuses() ? NULL : __real_malloc(sizeof(*b) + size);

	if (!b) {
		trace("no memory", size, 0);
		errno = ENOMEM;
		return NULL;
	}
	b->owner = process_current();
	b->size = size;
	link_block(b);
	return b + 1;
}

void *__wrap_calloc(size_t count, size_t size)
{
	void *p = __wrap_malloc(count * size);

	return p ? memset(p, 0, count * size) : NULL;
}

void __wrap_free(void *p)
{
	struct block *b = p;

	if (!p)
		return;
	unlink_block(b - 1);
	__real_free(b - 1);
}

void *__wrap_realloc(void *p, size_t size)
{
	struct block *old = p;
	void *grown = __wrap_malloc(size);

	if (!p || !grown)
		return grown;
	memcpy(grown, p, old[-1].size < size ? old[-1].size : size);
	__wrap_free(p);
	return grown;
}

char *__wrap_strndup(const char *text, size_t len)
{
	size_t n = strnlen(text, len);
	char *copy = __wrap_malloc(n + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, n);
	copy[n] = '\0';
	return copy;
}

char *__wrap_strdup(const char *text)
{
	return __wrap_strndup(text, strlen(text));
}

size_t memory_left(const struct process *p, unsigned *blocks)
{
	size_t bytes = 0;

	*blocks = 0;
	for (const struct block *b = p->blocks; b; b = b->next) {
		bytes += b->size;
		++*blocks;
	}
	for (const struct mapping *m = p->mappings; m; m = m->next) {
		bytes += m->len;
		++*blocks;
	}
	return bytes;
}

/* ---- mappings ---- */

void *__wrap_mmap(void *at, size_t len, int protection, int flags, int fd,
		  off_t offset)
{
	struct file *file = fd >= 0 ? file_find(fd) : NULL;
	struct process *p = process_current();
	struct mapping *m;
	void *mapped;

	mapped = __real_mmap(at, len, protection, flags,
			     file ? file_real_fd(file) : fd, offset);
	if (mapped == MAP_FAILED)
		return mapped;
	m = __real_calloc(1, sizeof(*m));
	m->at = mapped;
	m->len = len;
	m->offset = offset;
	m->file = file ? file_ref(file) : NULL;
	m->next = p->mappings;
	p->mappings = m;
	return mapped;
}

static void drop_mapping(struct mapping **at)
{
	struct mapping *m = *at;

	*at = m->next;
	__real_munmap(m->at, m->len);
	if (m->file)
		file_unref(m->file);
	__real_free(m);
}

int __wrap_munmap(void *from, size_t len)
{
	struct mapping **at = &process_current()->mappings;

	while (*at && (*at)->at != from)
		at = &(*at)->next;
	if (!*at || (*at)->len != len) {
		failed("munmap of what is not mapped");
		errno = EINVAL;
		return -1;
	}
	drop_mapping(at);
	return 0;
}

const struct mapping *memory_mapping(const void *where)
{
	const struct mapping *m = process_current()->mappings;
	const char *at = where;

	while (m && (at < m->at || at >= m->at + m->len))
		m = m->next;
	return m;
}

void memory_free_all(struct process *p)
{
	while (p->blocks) {
		struct block *b = p->blocks;

		unlink_block(b);
		__real_free(b);
	}
	while (p->mappings)
		drop_mapping(&p->mappings);
}
