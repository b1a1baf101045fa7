/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of the promises of libpmi2x-allgather, from every rank of a real job, over
 * whatever transport the environment asks for. RING_EXPECT names the transport that
 * must have been chosen. Arguments choose what goes wrong; see ring-fault.c.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmi2.h"
#include "pmi2x.h"
#include "ring-exercise.h"

#define REPEATS 20
#define FLIGHT 6          /* operations under way at once */
#define LARGE 65536
#define MESSAGE 32736     /* bytes of a bundle that fit into a message */

int rank, size;
pmi2x_ring *ring;

void die(const char *what, const char *text)
{
	fprintf(stderr, "ring-exercise: rank %d: %s: %s\n", rank, what, text);
	exit(1);
}

void check(int code, const char *what)
{
	char text[600];

	if (!code)
		return;
	snprintf(text, sizeof(text), "error %d: %s", code,
		 pmi2x_ring_error(ring));
	die(what, text);
}

/* Byte i of the block of a rank in a round. */
static unsigned char pattern(int r, int round, size_t i)
{
	return (unsigned char)(r * 37 + round * 11 + i * 3 + (i >> 8));
}

static void fill(unsigned char *at, int r, int round, size_t len)
{
	for (size_t i = 0; i < len; i++)
		at[i] = pattern(r, round, i);
}

static void verify(const unsigned char *at, int r, int round, size_t len,
		   const char *what)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != pattern(r, round, i))
			die(what, "wrong data");
}

void *allocate(size_t n)
{
	void *memory = malloc(n + 1);

	if (!memory)
		die("malloc", "no memory");
	memset(memory, 0xee, n + 1);
	return memory;
}

/* ---- fixed blocks ---- */

/*
 * The cost that doc/allgather.md states for one allgather: half as many steps as
 * elements, every other element's bundle (8 bytes, 8 for each rank, the blocks)
 * received once, and in each step a message to each side while bundles fit into one.
 */
static void check_cost(const pmi2x_ring_counters *before, size_t len)
{
	uint64_t total, own;
	pmi2x_ring_counters now;

	check(pmi2x_ring_get_counters(ring, &now), "counters");
	if (now.operations != before->operations + 1)
		die("counters", "operations");
	if (now.bytes_received == before->bytes_received)
		return; /* it leads no node, uses PMI, or is alone */
	total = 8 * (uint64_t)now.elements + size * (8 + len);
	own = 8 + now.members * (8 + len);
	if (now.steps - before->steps != now.elements / 2 ||
	    now.bytes_received - before->bytes_received != total - own ||
	    (total <= MESSAGE && now.messages_sent - before->messages_sent !=
					 2 * (now.elements / 2)))
		die("counters", "not what the model says");
}

static void fixed(size_t len, int round)
{
	unsigned char *block = allocate(len);
	unsigned char *all = allocate(len * size);
	pmi2x_ring_counters before;

	fill(block, rank, round, len);
	check(pmi2x_ring_get_counters(ring, &before), "counters");
	check(pmi2x_ring_allgather(ring, block, len, all), "allgather");
	check_cost(&before, len);
	for (int r = 0; r < size; r++)
		verify(all + r * len, r, round, len, "allgather");
	if (all[len * size] != 0xee)
		die("allgather", "wrote behind the buffer");
	free(block);
	free(all);
}

/* ---- variable blocks ---- */

/* Some are empty, some are long. */
static size_t length_of(int r, int round, size_t max)
{
	static const int parts[] = { 0, 1, 3, 100, 7, 50, 0, 20 };

	return max * parts[(r + round) % 8] / 100;
}

static void variable(size_t max, size_t stride, int round)
{
	size_t own = length_of(rank, round, max);
	unsigned char *block = allocate(own);
	unsigned char *all = allocate(stride * size);
	size_t *lengths = allocate(size * sizeof(*lengths));

	fill(block, rank, round, own);
	check(pmi2x_ring_allgather_v(ring, own ? block : NULL, own,
				     stride ? all : NULL, stride, lengths),
	      "allgather_v");
	for (int r = 0; r < size; r++) {
		size_t len = length_of(r, round, max);

		if (lengths[r] != len)
			die("allgather_v", "wrong length");
		if (len > stride)
			len = stride;
		verify(all + r * stride, r, round, len, "allgather_v");
		if (len < stride && all[r * stride + len] != 0xee)
			die("allgather_v", "wrote behind a block");
	}
	free(block);
	free(all);
	free(lengths);
}

/* ---- several at once ---- */

struct flight {
	unsigned char *block, *all;
	size_t len;
	pmi2x_ring_request request;
};

static void start(struct flight *f, int round)
{
	f->len = (size_t)17 << (round % 5);
	f->block = allocate(f->len);
	f->all = allocate(f->len * size);
	fill(f->block, rank, round, f->len);
	check(pmi2x_ring_iallgather(ring, f->block, f->len, f->all,
				    &f->request), "iallgather");
}

static void finish(struct flight *f, int round)
{
	int flag = 0;

	if (round % 2) {
		check(pmi2x_ring_wait(ring, f->request), "wait");
	} else {
		/* Some ranks poll, some wait. */
		while (!flag) {
			check(pmi2x_ring_test(ring, f->request, &flag), "test");
			sched_yield();
		}
	}
	for (int r = 0; r < size; r++)
		verify(f->all + r * f->len, r, round, f->len, "iallgather");
	free(f->block);
	free(f->all);
	if (pmi2x_ring_wait(ring, f->request) != PMI2_ERR_INVALID_ARG)
		die("wait", "a request can be used twice");
}

/* Completed in an order that differs from rank to rank. */
static void interleaved(void)
{
	struct flight f[FLIGHT];

	for (int i = 0; i < FLIGHT; i++)
		start(&f[i], i);
	for (int i = 0; i < FLIGHT; i++) {
		int k = (i * 5 + rank) % FLIGHT;

		finish(&f[k], k);
	}
}

/* ---- misuse ---- */

static void wrong_arguments(void)
{
	static char too_long[PMI2X_RING_BLOCK_MAX + 1];
	pmi2x_ring_request request;
	int flag;

	if (pmi2x_ring_iallgather(ring, NULL, 1, too_long, &request) !=
		    PMI2_ERR_INVALID_ARG ||
	    pmi2x_ring_iallgather_v(ring, "x", 1, too_long, 1, NULL,
				    &request) != PMI2_ERR_INVALID_ARG ||
	    pmi2x_ring_iallgather_v(ring, too_long, sizeof(too_long), too_long,
				    0, (size_t[1]){ 0 }, &request) !=
		    PMI2_ERR_INVALID_VAL_LENGTH ||
	    pmi2x_ring_test(ring, 9999, &flag) != PMI2_ERR_INVALID_ARG ||
	    pmi2x_ring_wait(NULL, 1) != PMI2_ERR_INVALID_ARG ||
	    pmi2x_ring_get_counters(ring, NULL) != PMI2_ERR_INVALID_ARG)
		die("arguments", "not refused");
	if (pmi2x_ring_destroy(NULL) || pmi2x_ring_error(NULL)[0] ||
	    pmi2x_ring_transport(NULL)[0])
		die("no ring", "is no argument");
}

/* Neither success nor a null pointer changes the text of the latest failure. */
static void text_of_an_error_stays(void)
{
	pmi2x_ring_request request;
	unsigned char *all = allocate(size);
	int flag;

	if (pmi2x_ring_test(ring, 9999, &flag) != PMI2_ERR_INVALID_ARG)
		die("arguments", "not refused");
	check(pmi2x_ring_allgather(ring, "x", 1, all), "allgather");
	if (pmi2x_ring_iallgather(ring, NULL, 1, all, &request) !=
		    PMI2_ERR_INVALID_ARG ||
	    strcmp(pmi2x_ring_error(ring), "no such request"))
		die("error", pmi2x_ring_error(ring));
	free(all);
}

/* All are told, and the ring goes on. */
static void lengths_that_differ(void)
{
	unsigned char block[8] = { 0 };
	unsigned char *all = allocate(8 * size);
	int code = pmi2x_ring_allgather(ring, block,
					rank == size - 1 ? 5 : 8, all);

	if (size > 1 && (code != PMI2_ERR_INVALID_VAL_LENGTH ||
			 !strstr(pmi2x_ring_error(ring), "another length")))
		die("a block of another length", "not refused");
	free(all);
}

/* ---- leaks ---- */

int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		die(path, strerror(errno));
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Shared mappings of the ring; the memory has no name elsewhere. */
int count_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps))
		n += strstr(line, "pmi2x-allgather") &&
		     strstr(line, "memfd") ? 1 : 0;
	if (maps)
		fclose(maps);
	return n;
}

void create(void)
{
	const char *expect = getenv("RING_EXPECT");
	char why[PMI2X_RING_ERROR_MAX];
	int code = pmi2x_ring_create(&ring, NULL, why, sizeof(why));

	if (code)
		die("create", why);
	if (expect && strcmp(expect, pmi2x_ring_transport(ring)))
		die("transport", pmi2x_ring_transport(ring));
}

void all_of_it(void)
{
	static const size_t lens[] = { 0, 1, 64, 1000, LARGE };

	for (size_t i = 0; i < sizeof(lens) / sizeof(*lens); i++)
		fixed(lens[i], (int)i);
	for (int i = 0; i < REPEATS; i++)
		fixed(64, i);
	for (int i = 0; i < 9; i++)
		variable(300, 300, i);
	variable(300, 10, 1);
	variable(300, 0, 1);
	variable(LARGE, LARGE, 2);
	interleaved();
	wrong_arguments();
	text_of_an_error_stays();
	lengths_that_differ();
	interleaved();
}

/* ---- rings that live unusually ---- */

static void two_at_once(void)
{
	struct flight f[2];
	pmi2x_ring *rings[2];

	for (int i = 0; i < 2; i++) {
		create();
		rings[i] = ring;
	}
	for (int i = 0; i < 2; i++) {
		ring = rings[i];
		start(&f[i], 2 + i);
	}
	for (int i = 2; i-- > 0;) {
		ring = rings[i];
		finish(&f[i], 2 + i);
		check(pmi2x_ring_destroy(ring), "destroy");
	}
	ring = NULL;
}

/*
 * Operations that are under way then leave nothing behind, and the next ring is well.
 */
static void destroyed_early(void)
{
	struct flight f;

	create();
	start(&f, 1);
	check(pmi2x_ring_destroy(ring), "destroy");
	ring = NULL;
	free(f.block);
	free(f.all);
}

static void after_the_end(void)
{
	char why[PMI2X_RING_ERROR_MAX] = "";

	if (pmi2x_ring_create(NULL, NULL, NULL, 0) != PMI2_ERR_INVALID_ARG ||
	    !pmi2x_ring_create(&ring, NULL, NULL, 0) ||
	    !pmi2x_ring_create(&ring, NULL, why, sizeof(why)) || ring)
		die("create without a session", "not refused");
	if (!strstr(why, "has PMI2_Init been called?"))
		die("create without a session", why);
}

/* Twice, so that what the first leaves open would be seen. */
static void everything(void)
{
	int fds = count_entries("/proc/self/fd");

	two_at_once();
	destroyed_early();
	for (int i = 0; i < 2; i++) {
		create();
		all_of_it();
		check(pmi2x_ring_destroy(ring), "destroy");
		ring = NULL;
	}
	if (count_entries("/proc/self/fd") != fds || count_maps())
		die("destroy", "descriptors or mappings are left");
}

int main(int argc, char **argv)
{
	int spawned, appnum, code = 0;

	if (PMI2_Init(&spawned, &size, &rank, &appnum)) {
		fprintf(stderr, "ring-exercise: PMI2_Init failed\n");
		return 1;
	}
	if (argc > 2)
		code = ring_fault(argv[1], atoi(argv[2]));
	else
		everything();
	PMI2_Finalize();
	if (argc <= 2)
		after_the_end();
	return code;
}
