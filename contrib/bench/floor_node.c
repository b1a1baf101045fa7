/* SPDX-License-Identifier: BSD-3-Clause */
/* A node process of the floor program: its ranks, its rounds, the final check. */
#include "floor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libio/clock.h"

#define CHUNK 65536u /* bytes passed on before more of the image is read */

void floor_die(int err, const char *what)
{
	if (err)
		fprintf(stderr, "floor: %s: %s\n", what, strerror(err));
	else
		fprintf(stderr, "floor: %s\n", what);
	_exit(1);
}

void *floor_memory(size_t len, bool shared)
{
	void *memory = mmap(NULL, len, PROT_READ | PROT_WRITE,
			    (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS,
			    -1, 0);

	if (memory == MAP_FAILED)
		floor_die(errno, "memory");
	return memory;
}

void floor_read(int fd, void *data, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t n = read(fd, (char *)data + have, len - have);

		if (n == 0)
			floor_die(0, "a process has ended early");
		if (n < 0 && errno != EINTR)
			floor_die(errno, "read");
		have += n > 0 ? n : 0;
	}
}

void floor_write(int fd, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)data + done, len - done);

		if (n < 0 && errno != EINTR)
			floor_die(errno, "write");
		done += n > 0 ? n : 0;
	}
}

static unsigned char record_byte(uint32_t rank, uint32_t round, uint32_t i)
{
	return rank * 31 + (rank >> 8) * 17 + round * 7 + i;
}

void floor_fill(unsigned char *record, uint32_t bytes, uint32_t rank,
		uint32_t round)
{
	for (uint32_t i = 0; i < bytes; i++)
		record[i] = record_byte(rank, round, i);
}

unsigned char *floor_record(const struct floor_node *node, uint32_t local)
{
	size_t rank = node->run->first[node->position] + local;

	return node->image + rank * node->run->options.bytes;
}

static uint32_t all_rounds(const struct floor_node *node)
{
	return node->run->options.rounds + FLOOR_UNTIMED;
}

static _Noreturn void rank_main(struct floor_node *node, uint32_t local)
{
	const struct floor_options *o = &node->run->options;
	uint32_t size = floor_size(o);
	struct floor_stamp *stamp = node->run->stamps +
				    node->run->first[node->position] + local;

	for (uint32_t round = 0; round < all_rounds(node); round++) {
		if (node->run->meeting)
			floor_meet(node->run->meeting, size, round);
		stamp->in = clock_s(CLOCK_MONOTONIC);
		o->way->enter(node, local, round);
		stamp->out = clock_s(CLOCK_MONOTONIC);
		stamp += size;
	}
	_exit(0);
}

static void start_ranks(struct floor_node *node)
{
	pid_t parent = getpid();

	for (uint32_t i = 0; i < floor_ranks(node); i++) {
		pid_t pid = fork();

		if (pid < 0)
			floor_die(errno, "fork of a rank");
		if (pid > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		rank_main(node, i);
	}
}

/* The records of the ranks of these nodes. */
static void *part_of(const struct floor_node *node, struct tree_range nodes,
		     size_t *len)
{
	const uint32_t *first = node->run->first;
	size_t bytes = node->run->options.bytes;

	*len = (first[nodes.end] - first[nodes.first]) * bytes;
	return node->image + first[nodes.first] * bytes;
}

/* A subtree's ranks are contiguous, so a child's data has its place already. */
static void gather(struct floor_node *node)
{
	const struct floor_options *o = &node->run->options;
	size_t len;
	void *part;

	o->way->collect(node);
	for (uint32_t i = 0; i < node->place.children; i++) {
		part = part_of(node, tree_child(&node->place, i),
			       &len);
		floor_read(node->down[i], part, len);
	}
	part = part_of(node, node->place.range, &len);
	if (node->up >= 0)
		floor_write(node->up, part, len);
}

static void spread(struct floor_node *node)
{
	size_t len = floor_image_len(&node->run->options);

	for (size_t at = 0; at < len;) {
		size_t n = len - at < CHUNK ? len - at : CHUNK;

		if (node->up >= 0)
			floor_read(node->up, node->image + at, n);
		for (uint32_t i = 0; i < node->place.children; i++)
			floor_write(node->down[i], node->image + at, n);
		at += n;
	}
	node->run->options.way->release(node);
}

static void check_image(const struct floor_node *node)
{
	const struct floor_options *o = &node->run->options;
	uint32_t round = all_rounds(node) - 1;
	const unsigned char *at = node->image;

	for (uint32_t rank = 0; rank < floor_size(o); rank++) {
		for (uint32_t i = 0; i < o->bytes; i++, at++) {
			if (*at != record_byte(rank, round, i))
				floor_die(0, "a value is wrong");
		}
	}
}

/* A rank that fails takes its node along, and so the run. */
static void reap(int options)
{
	int status;

	while (waitpid(-1, &status, options) > 0) {
		if (status)
			_exit(1);
	}
}

static void on_child(int signal_number)
{
	int saved = errno;

	reap(WNOHANG);
	errno = saved;
}

static void watch_ranks(void)
{
	struct sigaction action = { .sa_handler = on_child,
				    .sa_flags = SA_RESTART };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigaction(SIGCHLD, &action, NULL);
	sigprocmask(SIG_UNBLOCK, &child, NULL); /* the launcher blocks it */
}

void floor_node_main(struct floor_node *node)
{
	const struct floor_options *o = &node->run->options;

	node->image = floor_memory(floor_image_len(o), o->way->shared);
	o->way->prepare(node);
	watch_ranks();
	start_ranks(node);
	for (uint32_t round = 0; round < all_rounds(node); round++) {
		gather(node);
		spread(node);
	}
	reap(0);
	check_image(node);
	_exit(0);
}
