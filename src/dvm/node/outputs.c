/* SPDX-License-Identifier: BSD-3-Clause */
/* The pipes over which the ranks of a part write: outputs.h. */
#include "dvm/node/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "libio/fd.h"

#define PIECE 65536  /* bytes that are read at once */
#define EVENTS 64    /* pieces in a turn of the loop */
#define RESERVED 64  /* descriptors that are kept for PMI, other daemons and the head */

struct output {
	uint32_t part;
	int ours[2]; /* read ends for stdout and stderr; -1: closed */
	struct passed_fds theirs;
	size_t limit; /* bytes that may be read; 0: the pipes are not watched */
	UT_hash_handle hh;
};

struct outputs {
	uv_poll_t poll; /* for `epoll` */
	int epoll;
	outputs_fn *fn;
	void *arg;
	struct output *all;
	int most; /* above the highest descriptor of a pipe */
	char piece[PIECE];
};

static int watch(struct outputs *o, const struct output *p, int i)
{
	struct epoll_event e = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)p->part << 1 | (unsigned)i,
	};

	return epoll_ctl(o->epoll, EPOLL_CTL_ADD, p->ours[i], &e) ? -errno : 0;
}

static int open_pipe(struct outputs *o, struct output *p, int i)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	p->ours[i] = ends[0];
	p->theirs.fds[p->theirs.count++] = ends[1];
	if (ends[1] >= o->most)
		return -EMFILE;
	return watch(o, p, i);
}

static void close_theirs(struct output *p)
{
	while (p->theirs.count)
		close(p->theirs.fds[--p->theirs.count]);
}

static void output_free(struct output *p)
{
	fd_close(&p->ours[0]);
	fd_close(&p->ours[1]);
	close_theirs(p);
	free(p);
}

int outputs_open(struct outputs *o, uint32_t part)
{
	struct output *p = malloc(sizeof(*p));
	int rc;

	if (!p)
		return -ENOMEM;
	*p = (struct output){
		.part = part, .ours = { -1, -1 }, .limit = SIZE_MAX,
	};
	rc = open_pipe(o, p, 0);
	rc = rc ? rc : open_pipe(o, p, 1);
	if (rc) {
		output_free(p);
		return rc;
	}
	HASH_ADD(hh, o->all, part, sizeof(p->part), p);
	if (p->hh.tbl)
		return 0;
	output_free(p);
	return -ENOMEM;
}

static struct output *find(struct outputs *o, uint32_t part)
{
	struct output *p;

	HASH_FIND(hh, o->all, &part, sizeof(part), p);
	return p;
}

void outputs_pass(struct outputs *o, uint32_t part, int fd)
{
	struct output *p = find(o, part);

	p->theirs.fds[p->theirs.count++] = fd;
}

void outputs_of(struct outputs *o, uint32_t part, struct passed_fds *fds)
{
	*fds = find(o, part)->theirs;
}

void outputs_started(struct outputs *o, uint32_t part)
{
	struct output *p = find(o, part);

	if (p)
		close_theirs(p);
}

/*
 * Remove the pipe from the epoll set: else its end would be an event, though it is not
 * watched.
 */
static void set_watched(struct outputs *o, struct output *p, bool watched)
{
	for (int i = 0; i < 2; i++)
		if (p->ours[i] < 0)
			;
		else if (!watched)
			epoll_ctl(o->epoll, EPOLL_CTL_DEL, p->ours[i], NULL);
		else if (watch(o, p, i))
			fd_close(&p->ours[i]); /* its ranks must not block forever */
}

void outputs_limit(struct outputs *o, uint32_t part, size_t bytes)
{
	struct output *p = find(o, part);

	if (!p)
		return;
	if (!bytes != !p->limit)
		set_watched(o, p, bytes);
	p->limit = bytes;
}

/* Read a piece only: others have their turn after it. Returns its bytes. */
static size_t read_piece(struct outputs *o, struct output *p, int i, size_t max)
{
	size_t size = max < sizeof(o->piece) ? max : sizeof(o->piece);
	ssize_t n = read(p->ours[i], o->piece, size);

	if (n > 0)
		o->fn(o->arg, p->part, i + 1, o->piece, (size_t)n);
	else if (!n || errno != EINTR)
		fd_close(&p->ours[i]);
	return n > 0 ? (size_t)n : 0;
}

/* Read all that the pipe holds now, which may be nothing. */
static void read_rest(struct outputs *o, struct output *p, int i)
{
	size_t n = 1;
	int left;

	if (ioctl(p->ours[i], FIONREAD, &left) < 0)
		return;
	for (; n && left > 0; left -= (int)n)
		n = read_piece(o, p, i, (size_t)left);
}

static void take_event(struct outputs *o, uint64_t data)
{
	struct output *p = find(o, (uint32_t)(data >> 1));

	if (p && p->limit && p->ours[data & 1] >= 0)
		read_piece(o, p, data & 1, p->limit);
}

/*
 * A process that has left its rank's group may hold the pipe, and write forever: read no
 * more than a pipe holds.
 */
void outputs_close(struct outputs *o, uint32_t part)
{
	struct output *p = find(o, part);

	if (!p)
		return;
	for (int i = 0; i < 2; i++)
		if (p->ours[i] >= 0)
			read_rest(o, p, i);
	HASH_DEL(o->all, p);
	output_free(p);
}

/* ---- life ---- */

static void on_events(uv_poll_t *poll, int status, int ready)
{
	struct outputs *o = poll->data;
	struct epoll_event events[EVENTS];
	int n = epoll_wait(o->epoll, events, EVENTS, 0);

	for (int i = 0; i < n; i++)
		take_event(o, events[i].data.u64);
}

static int most_fds(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	return limit.rlim_cur > 4 * RESERVED ? (int)limit.rlim_cur - RESERVED :
					       (int)limit.rlim_cur;
}

int outputs_create(struct outputs **out, uv_loop_t *loop, outputs_fn *fn, void *arg)
{
	struct outputs *o = calloc(1, sizeof(*o));
	int rc;

	*out = o;
	if (!o)
		return -ENOMEM;
	o->fn = fn;
	o->arg = arg;
	o->most = most_fds();
	o->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (o->epoll < 0)
		return -errno;
	o->poll.data = o;
	rc = uv_poll_init(loop, &o->poll, o->epoll);
	return rc ? rc : uv_poll_start(&o->poll, UV_READABLE, on_events);
}

void outputs_end(struct outputs *o)
{
	if (!o || o->poll.type == UV_UNKNOWN_HANDLE || uv_is_closing((uv_handle_t *)&o->poll))
		return;
	uv_close((uv_handle_t *)&o->poll, NULL);
}

void outputs_destroy(struct outputs *o)
{
	struct output *p, *next;

	if (!o)
		return;
	HASH_ITER(hh, o->all, p, next) {
		HASH_DEL(o->all, p);
		output_free(p);
	}
	fd_close(&o->epoll);
	free(o);
}
