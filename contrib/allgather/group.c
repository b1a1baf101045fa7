/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a node's shared memory: creation, attaching, joining, failure. */
#include "group.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "group_layout.h"

/* ---- layout ---- */

size_t group_page_size(uint32_t members)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size = sizeof(struct group_page) +
		      members * sizeof(struct group_member);

	return (size + page - 1) / page * page;
}

off_t group_slot_at(const struct group *g, uint32_t member)
{
	return g->page_size + (off_t)member * PMI2X_RING_BLOCK_MAX;
}

off_t group_result_at(const struct group *g)
{
	return group_slot_at(g, g->members);
}

/* ---- sleeping ---- */

void group_sleep(_Atomic uint32_t *word, uint32_t value)
{
	struct timespec timeout = { 0, GROUP_LOOK_MS * 1000000L };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void group_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- life ---- */

static int explain(char *why, size_t size, int error, const char *what)
{
	snprintf(why, size, "shared memory: %s: %s", what, strerror(error));
	return -error;
}

/* The byte of a member: locked while it lives. Locks end with the process. */
static int hold_lock(const struct group *g)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
			      .l_start = g->index, .l_len = 1 };

	return fcntl(g->fd, F_SETLK, &lock) ? -errno : 0;
}

static bool lock_held(const struct group *g, uint32_t member)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
			      .l_start = member, .l_len = 1 };

	/* When in doubt it lives. */
	return fcntl(g->fd, F_GETLK, &lock) || lock.l_type != F_UNLCK;
}

static struct group *group_new(uint32_t members, uint32_t index)
{
	struct group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->fd = -1;
	g->members = members;
	g->index = index;
	g->page_size = group_page_size(members);
	return g;
}

static int map_page(struct group *g)
{
	void *page = mmap(NULL, g->page_size, PROT_READ | PROT_WRITE,
			  MAP_SHARED, g->fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	g->page = page;
	return 0;
}

void group_close(struct group *g)
{
	if (!g)
		return;
	if (g->result)
		munmap(g->result, g->mapped);
	if (g->page)
		munmap(g->page, g->page_size);
	if (g->fd >= 0)
		close(g->fd);
	free(g);
}

/* Writing into a file behind the limit would raise SIGXFSZ. */
int group_check(char *why, size_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return 0;
	snprintf(why, size, "shared memory: RLIMIT_FSIZE is set; ulimit -f "
		 "unlimited");
	return -EFBIG;
}

static int create_file(struct group *g)
{
	int rc;

	g->fd = memfd_create("pmi2x-allgather", MFD_CLOEXEC);
	if (g->fd < 0 || ftruncate(g->fd, group_result_at(g)))
		return -errno;
	rc = hold_lock(g);
	return rc ? rc : map_page(g);
}

int group_create(struct group **out, uint32_t members, char *why, size_t size)
{
	int rc = group_check(why, size);
	struct group *g;

	if (rc)
		return rc;
	g = group_new(members, 0);
	if (!g)
		return explain(why, size, ENOMEM, "create");
	rc = members > GROUP_MEMBERS_MAX ? -E2BIG : create_file(g);
	if (rc) {
		group_close(g);
		return explain(why, size, -rc, "create");
	}
	g->page->magic = GROUP_MAGIC;
	g->page->members = members;
	atomic_store(&g->page->member[0].attached, 1);
	*out = g;
	return 0;
}

void group_token(const struct group *g, char *out)
{
	snprintf(out, GROUP_TOKEN_MAX, "%ld:%d", (long)getpid(), g->fd);
}

/* The leader's pid may be that of another process, in another namespace. */
static int check_page(const struct group *g)
{
	struct stat st;

	if (fstat(g->fd, &st) || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() || st.st_size < group_result_at(g))
		return -ESTALE;
	return 0;
}

static int open_file(struct group *g, const char *token)
{
	char path[64];
	long pid;
	int fd, rc;

	if (sscanf(token, "%ld:%d", &pid, &fd) != 2 || pid < 1 || fd < 0)
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/%ld/fd/%d", pid, fd);
	/* With these flags no device or FIFO blocks: check_page rejects those. */
	g->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (g->fd < 0)
		return -errno;
	rc = check_page(g);
	if (!rc)
		rc = map_page(g);
	if (!rc && (g->page->magic != GROUP_MAGIC ||
		    g->page->members != g->members))
		rc = -ESTALE;
	return rc ? rc : hold_lock(g);
}

int group_attach(struct group **out, const char *token, uint32_t members,
		 uint32_t index, char *why, size_t size)
{
	struct group *g = group_new(members, index);
	int rc;

	if (!g)
		return explain(why, size, ENOMEM, "attach");
	rc = open_file(g, token);
	if (rc) {
		group_close(g);
		return explain(why, size, -rc, "attach");
	}
	atomic_store(&g->page->member[index].attached, 1);
	*out = g;
	return 0;
}

/* ---- joining ---- */

void group_give_value(struct group *g, uint32_t round, const char *value)
{
	struct group_page *p = g->page;

	snprintf(p->value, sizeof(p->value), "%s", value);
	atomic_store(&p->left_edges, 0);
	atomic_store(&p->right_edges, 0);
	atomic_store(&p->round, round);
	group_wake(&p->round);
}

int group_wait_value(struct group *g, uint32_t round, char *value)
{
	uint32_t now = atomic_load(&g->page->round);

	if (now != round) {
		group_sleep(&g->page->round, now);
		if (atomic_load(&g->page->round) != round)
			return -EAGAIN;
	}
	memcpy(value, g->page->value, GROUP_VALUE_MAX);
	value[GROUP_VALUE_MAX - 1] = '\0';
	return 0;
}

static void note_edge(_Atomic uint32_t *count, char *at, const char *value)
{
	if (value && atomic_fetch_add(count, 1) == 0)
		snprintf(at, GROUP_VALUE_MAX, "%s", value);
}

void group_join(struct group *g, const struct group_edges *edges)
{
	struct group_page *p = g->page;

	note_edge(&p->left_edges, p->left, edges->left);
	note_edge(&p->right_edges, p->right, edges->right);
	if ((atomic_fetch_add(&p->joined, 1) + 1) % g->members == 0)
		group_wake(&p->joined);
}

int group_wait_joined(struct group *g, uint32_t round)
{
	uint32_t now = atomic_load(&g->page->joined);

	if (now == round * g->members)
		return 0;
	group_sleep(&g->page->joined, now);
	return -EAGAIN;
}

static const char *edge(const uint32_t count, char *text)
{
	text[GROUP_VALUE_MAX - 1] = '\0';
	return count == 1 ? text : NULL;
}

const char *group_left(const struct group *g)
{
	return edge(atomic_load(&g->page->left_edges), g->page->left);
}

const char *group_right(const struct group *g)
{
	return edge(atomic_load(&g->page->right_edges), g->page->right);
}

/* ---- failure ---- */

void group_fail(struct group *g, const char *text)
{
	struct group_page *p = g->page;
	uint32_t well = GROUP_WELL;

	if (!atomic_compare_exchange_strong(&p->failure, &well, GROUP_FAILING))
		return;
	snprintf(p->error, sizeof(p->error), "%s", text);
	atomic_store(&p->failure, GROUP_HAS_FAILED);
	group_wake(&p->entered);
	group_wake(&p->finished);
}

bool group_failed(const struct group *g, char *text)
{
	if (atomic_load(&g->page->failure) != GROUP_HAS_FAILED)
		return false;
	memcpy(text, g->page->error, PMI2X_RING_ERROR_MAX);
	text[PMI2X_RING_ERROR_MAX - 1] = '\0';
	return true;
}

static bool is_dead(const struct group *g, uint32_t member)
{
	return atomic_load(&g->page->member[member].attached) &&
	       !lock_held(g, member);
}

int group_dead(const struct group *g)
{
	for (uint32_t i = 0; i < g->members; i++)
		if (i != g->index && is_dead(g, i))
			return (int)i;
	return -1;
}

int group_dead_missing(const struct group *g)
{
	for (uint32_t i = 0; i < g->members; i++)
		if (i != g->index && is_dead(g, i) &&
		    atomic_load(&g->page->member[i].posted) != g->generation)
			return (int)i;
	return -1;
}

bool group_leader_dead(const struct group *g)
{
	return g->index && is_dead(g, 0);
}
