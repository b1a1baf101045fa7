/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libpmi2x-allgather promises, from every rank of a real job, over whatever
 * transport the environment asks for. RING_EXPECT names the transport that must
 * have been chosen. Arguments choose what goes wrong; see `faults`.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmi2.h"
#include "pmi2x.h"
#include "pmi2x_allgather.h"

#define REPEATS 20
#define FLIGHT 6          /* operations under way at once */
#define LARGE 65536

static int rank, size;
static pmi2x_ring *ring;

static void die(const char *what, const char *text)
{
	fprintf(stderr, "ring-exercise: rank %d: %s: %s\n", rank, what, text);
	exit(1);
}

static void check(int code, const char *what)
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

static void *allocate(size_t n)
{
	void *memory = malloc(n + 1);

	if (!memory)
		die("malloc", "no memory");
	memset(memory, 0xee, n + 1);
	return memory;
}

/* ---- fixed blocks ---- */

/*
 * What doc/allgather.md says of steps and bytes, for one allgather: half as
 * many steps as elements, and every other element's bundle (8 bytes, 8 for each
 * rank, the blocks) received once.
 */
static void check_cost(const pmi2x_ring_counters *before, size_t len)
{
	uint64_t total, own;
	pmi2x_ring_counters now;

	check(pmi2x_ring_get_counters(ring, &now), "counters");
	if (now.operations != before->operations + 1)
		die("counters", "operations");
	if (now.bytes_received == before->bytes_received)
		return; /* it leads no node, or goes over PMI, or is alone */
	total = 8 * (uint64_t)now.elements + size * (8 + len);
	own = 8 + now.members * (8 + len);
	if (now.steps - before->steps != now.elements / 2 ||
	    now.bytes_received - before->bytes_received != total - own ||
	    now.messages_sent - before->messages_sent < now.elements - 1)
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
	    pmi2x_ring_wait(NULL, 1) != PMI2_ERR_INVALID_ARG)
		die("arguments", "not refused");
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

static int count_entries(const char *path)
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
static int count_maps(void)
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

static void create(void)
{
	const char *expect = getenv("RING_EXPECT");
	char why[PMI2X_RING_ERROR_MAX];
	int code = pmi2x_ring_create(&ring, NULL, why, sizeof(why));

	if (code)
		die("create", why);
	if (expect && strcmp(expect, pmi2x_ring_transport(ring)))
		die("transport", pmi2x_ring_transport(ring));
}

static void all_of_it(void)
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
	lengths_that_differ();
	interleaved();
}

/* Twice, so that what the first leaves open would be seen. */
static void everything(void)
{
	int fds = count_entries("/proc/self/fd");

	for (int i = 0; i < 2; i++) {
		create();
		all_of_it();
		check(pmi2x_ring_destroy(ring), "destroy");
		ring = NULL;
	}
	if (count_entries("/proc/self/fd") != fds || count_maps())
		die("destroy", "descriptors or mappings are left");
}

/* ---- what goes wrong ---- */

/* Who is late may be in the last round when the fault has come already. */
static void rounds(int count)
{
	char *all = allocate(64 * (size_t)size), block[64] = "";
	int code = 0;

	create();
	for (int i = 0; i < count && !code; i++)
		code = pmi2x_ring_allgather(ring, block, 64, all);
	if (code && code != PMI2_FAIL)
		check(code, "allgather");
	free(all);
}

/*
 * Everybody else must be told within a bounded time, and by name. The fault has
 * happened at the rank in argv[2] before the others call this.
 */
static void expect_failure(void)
{
	char block[64] = "", *all = allocate(64 * (size_t)size);
	int fds, code = 0;

	for (int i = 0; i < 1000 && !code; i++)
		code = pmi2x_ring_allgather(ring, block, 64, all);
	if (code != PMI2_FAIL)
		die("a ring without a rank", "no error");
	printf("rank %d was told: %s\n", rank, pmi2x_ring_error(ring));
	/* It stays failed. */
	if (pmi2x_ring_allgather(ring, block, 64, all) != PMI2_FAIL)
		die("a failed ring", "works again");
	fds = count_entries("/proc/self/fd");
	pmi2x_ring_destroy(ring);
	if (count_entries("/proc/self/fd") > fds || count_maps())
		die("destroy after a failure", "something is left");
	free(all);
}

static void fault_kill(bool me)
{
	rounds(3);
	if (me)
		raise(SIGKILL);
	expect_failure();
}

/* The rank goes on without the ring, and so does its PMI session. */
static void fault_destroy(bool me)
{
	rounds(3);
	if (me)
		pmi2x_ring_destroy(ring);
	else
		expect_failure();
}

/* It has joined, but does not call. */
static void fault_absent(bool me)
{
	rounds(2);
	if (!me)
		expect_failure();
	check(PMI2_KVS_Fence(), "fence");
}

/* It does not even create the ring. Not for rank 0, which ends the job. */
static void fault_stranger(bool me)
{
	char why[PMI2X_RING_ERROR_MAX];

	if (me) {
		pause();
		return;
	}
	if (!pmi2x_ring_create(&ring, NULL, why, sizeof(why)))
		die("create without a rank", "no error");
	printf("rank %d was told: %s\n", rank, why);
	fflush(stdout);
	/* The fence that was given up is still entered: no way back. */
	if (rank == 0)
		PMI2_Abort(1, "as expected");
	pause();
}

static int cut_ring(const char value[], int *ring_rank, int *ring_size,
		    char left[], char right[], int maxvalue)
{
	int code = PMIX_Ring(value, ring_rank, ring_size, left, right, maxvalue);

	right[strlen(right) / 2] = '\0';
	return code;
}

static int lie_ring(const char value[], int *ring_rank, int *ring_size,
		    char left[], char right[], int maxvalue)
{
	int code = PMIX_Ring(value, ring_rank, ring_size, left, right, maxvalue);
	char *nonce = strrchr(right, ',');

	/* Another number: who answers there is taken for a stranger. */
	if (nonce && nonce != right)
		nonce[-1] = nonce[-1] == '0' ? '1' : '0';
	return code;
}

static void with_ring(bool me, int (*other)(const char[], int *, int *, char[],
					    char[], int))
{
	pmi2x_ring_pmi pmi = {
		.get_rank = PMI2_Job_GetRank, .get_size = PMI2_Info_GetSize,
		.put = PMI2_KVS_Put, .fence = PMI2_KVS_Fence,
		.get = PMI2_KVS_Get, .get_job_attr = PMI2_Info_GetJobAttr,
		.get_node_attr = PMI2_Info_GetNodeAttr,
		.put_node_attr = PMI2_Info_PutNodeAttr,
		.ring = me ? other : PMIX_Ring, .ifence = PMIX_KVS_Ifence,
		.iallgather = PMIX_Iallgather_n, .wait = PMIX_Wait,
		.test = PMIX_Test,
	};
	char why[PMI2X_RING_ERROR_MAX];
	int fds = count_entries("/proc/self/fd");

	if (pmi2x_ring_create(&ring, &pmi, why, sizeof(why))) {
		printf("rank %d was told: %s\n", rank, why);
	} else {
		printf("rank %d uses %s\n", rank, pmi2x_ring_transport(ring));
		all_of_it();
		pmi2x_ring_destroy(ring);
	}
	if (count_entries("/proc/self/fd") != fds || count_maps())
		die("a ring that was not formed", "something is left");
}

static void fault_cut(bool me)
{
	with_ring(me, cut_ring);
}

static void fault_lie(bool me)
{
	with_ring(me, lie_ring);
}

static const struct {
	const char *name;
	void (*run)(bool me);
} faults[] = {
	{ "kill", fault_kill },
	{ "destroy", fault_destroy },
	{ "absent", fault_absent },
	{ "stranger", fault_stranger },
	{ "cut", fault_cut },
	{ "lie", fault_lie },
};

static int run_fault(const char *name, int who)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		if (strcmp(name, faults[i].name))
			continue;
		faults[i].run(rank == who);
		return 0;
	}
	return 2;
}

int main(int argc, char **argv)
{
	int spawned, appnum, code = 0;

	if (PMI2_Init(&spawned, &size, &rank, &appnum)) {
		fprintf(stderr, "ring-exercise: PMI2_Init failed\n");
		return 1;
	}
	if (argc > 2)
		code = run_fault(argv[1], atoi(argv[2]));
	else
		everything();
	PMI2_Finalize();
	return code;
}
