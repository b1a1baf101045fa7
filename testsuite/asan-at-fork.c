/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AddressSanitizer's allocator, made safe to fork, for testsuite/sanitize.
 *
 * glibc takes the locks of its allocator before a fork; that of AddressSanitizer
 * does so since LLVM 17 and GCC 14 only. Before that a child which allocates waits
 * forever when another thread was allocating in the moment of the fork, and
 * slurmstepd, which forks its tasks beside threads of its own and the agent's,
 * lives so. Preloaded before libasan.so this keeps all threads out of the
 * allocator while a fork is made.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>

/* The allocator of libasan.so has these names. */
#define ASAN(name) __interceptor_##name

void *ASAN(malloc)(size_t size);
void *ASAN(calloc)(size_t count, size_t size);
void *ASAN(realloc)(void *old, size_t size);
void *ASAN(reallocarray)(void *old, size_t count, size_t size);
void *ASAN(memalign)(size_t alignment, size_t size);
void *ASAN(aligned_alloc)(size_t alignment, size_t size);
int ASAN(posix_memalign)(void **made, size_t alignment, size_t size);
char *ASAN(strdup)(const char *text);
char *ASAN(__strdup)(const char *text);
char *ASAN(strndup)(const char *text, size_t size);
void ASAN(free)(void *old);

/* Read while a thread is in the allocator, written during a fork. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void before_fork(void)
{
	pthread_rwlock_wrlock(&lock);
}

static void after_fork(void)
{
	pthread_rwlock_unlock(&lock);
}

/* The lock is known by its owner's thread id, which is another one here. */
static void in_child(void)
{
	lock = (pthread_rwlock_t)PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
}

__attribute__((constructor)) static void setup(void)
{
	pthread_atfork(before_fork, after_fork, in_child);
}

#define LOCKED(type, name, parameters, arguments)                              \
	type name parameters                                                   \
	{                                                                      \
		pthread_rwlock_rdlock(&lock);                                  \
		type result = ASAN(name) arguments;                            \
		pthread_rwlock_unlock(&lock);                                  \
		return result;                                                 \
	}

LOCKED(void *, malloc, (size_t size), (size))
LOCKED(void *, calloc, (size_t count, size_t size), (count, size))
LOCKED(void *, realloc, (void *old, size_t size), (old, size))
LOCKED(void *, reallocarray, (void *old, size_t count, size_t size),
       (old, count, size))
LOCKED(void *, memalign, (size_t alignment, size_t size), (alignment, size))
LOCKED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
LOCKED(int, posix_memalign, (void **made, size_t alignment, size_t size),
       (made, alignment, size))
LOCKED(char *, strdup, (const char *text), (text))
LOCKED(char *, __strdup, (const char *text), (text))
LOCKED(char *, strndup, (const char *text, size_t size), (text, size))

void free(void *old)
{
	pthread_rwlock_rdlock(&lock);
	ASAN(free)(old);
	pthread_rwlock_unlock(&lock);
}
