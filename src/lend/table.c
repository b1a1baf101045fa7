/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a node's ranks, as a rank maps it. */
#include "lend/table.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000L
#define NS_PER_S 1000000000L

size_t lend_memory_size(uint32_t ranks, uint32_t cores)
{
	size_t size = lend_table_size(ranks);

	if (!cores)
		return size;
	return size + accounts_size(ranks) + ledger_size(ranks, cores) +
	       arrivals_size(ranks, LEND_GROUPS);
}

/* A memory file of another size, or one that can still shrink, is not the table. */
static bool is_table(int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && (seals & F_SEAL_GROW) &&
	       !fstat(fd, &st) && (size_t)st.st_size == size;
}

struct lend_table *lend_table_map(const struct lend_place *place)
{
	size_t size = lend_memory_size(place->ranks, place->cores);
	void *at;

	if (place->ranks > LEND_RANKS_MAX || place->cores > LEDGER_CORES_MAX ||
	    !is_table(place->fd, size))
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, place->fd, 0);
	if (place->cores)
		fcntl(place->fd, F_SETFD, FD_CLOEXEC);
	else
		close(place->fd);
	return at == MAP_FAILED ? NULL : at;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value,
		  const struct timespec *limit)
{
	return syscall(SYS_futex, word, op, value, limit, NULL, FUTEX_BITSET_MATCH_ANY);
}

void lend_table_enter(struct lend_table *table, uint32_t slot,
		      const struct lend_facts *facts)
{
	struct lend_entry *entry = &table->entries[slot];

	if (atomic_load(&entry->ready))
		return;
	entry->facts = *facts;
	atomic_store(&entry->ready, 1);
	atomic_fetch_add(&table->arrived, 1);
	futex(&table->arrived, FUTEX_WAKE, INT_MAX, NULL);
}

static struct timespec time_in(int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * NS_PER_MS;
	if (t.tv_nsec >= NS_PER_S) {
		t.tv_sec++;
		t.tv_nsec -= NS_PER_S;
	}
	return t;
}

static bool is_before(const struct timespec *limit)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < limit->tv_sec ||
	       (now.tv_sec == limit->tv_sec && now.tv_nsec < limit->tv_nsec);
}

uint32_t lend_table_collect(struct lend_table *table, uint32_t ranks, int limit_ms,
			    struct lend_facts *facts)
{
	const struct timespec limit = time_in(limit_ms);
	uint32_t n = 0, arrived;

	while ((arrived = atomic_load(&table->arrived)) < ranks && is_before(&limit))
		futex(&table->arrived, FUTEX_WAIT_BITSET, arrived, &limit);
	for (uint32_t i = 0; i < ranks; i++)
		if (atomic_load(&table->entries[i].ready) == 1)
			facts[n++] = table->entries[i].facts;
	return n;
}
