/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults in a ring, one fault a run, at one rank. The others must be told within a
 * bounded time, and by name: each prints what it was told. Nobody may keep a descriptor
 * or a mapping.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pmi2.h"
#include "pmi2x.h"
#include "ring-exercise.h"

#define SMALL 64
#define BUSY (1 << 20)  /* bytes of a block that is under way for long */
#define BUSY_LOOKS 3    /* until the rank is killed */
#define DESCRIPTORS 256 /* none has a higher number */

static void say_told(const char *text)
{
	printf("rank %d was told: %s\n", rank, text);
	fflush(stdout);
}

static void nothing_is_left(int descriptors, const char *what)
{
	if (count_entries("/proc/self/fd") > descriptors || count_maps())
		die(what, "something is left");
}

/* ---- in a ring that works ---- */

/* A late rank may be in the last round when the fault has come already. */
static void rounds(int count)
{
	char *all = allocate(SMALL * (size_t)size), block[SMALL] = "";
	int code = 0;

	create();
	for (int i = 0; i < count && !code; i++)
		code = pmi2x_ring_allgather(ring, block, SMALL, all);
	if (code && code != PMI2_FAIL)
		check(code, "allgather");
	free(all);
}

/*
 * The fault has happened, or will soon; it ends an allgather of blocks of `len`
 * bytes, and all after it.
 */
static void expect_failure(size_t len)
{
	char *block = allocate(len), *all = allocate(len * size);
	int fds, code = 0;

	memset(block, 0, len);
	for (int i = 0; i < 1000 && !code; i++)
		code = pmi2x_ring_allgather(ring, block, len, all);
	if (code != PMI2_FAIL)
		die("a ring without a rank", "no error");
	say_told(pmi2x_ring_error(ring));
	/* The ring stays failed. */
	if (pmi2x_ring_allgather(ring, block, len, all) != PMI2_FAIL)
		die("a failed ring", "works again");
	fds = count_entries("/proc/self/fd");
	pmi2x_ring_destroy(ring);
	nothing_is_left(fds, "destroy after a failure");
	free(block);
	free(all);
}

static void fault_kill(bool me)
{
	rounds(3);
	if (me)
		raise(SIGKILL);
	expect_failure(SMALL);
}

/* In the middle of a block that is on many links at once. */
static void fault_busy(bool me)
{
	char *block = allocate(BUSY), *all = allocate((size_t)BUSY * size);
	pmi2x_ring_request request;
	int flag;

	rounds(3);
	if (!me) {
		expect_failure(BUSY);
	} else {
		check(pmi2x_ring_iallgather(ring, block, BUSY, all, &request),
		      "iallgather");
		for (int i = 0; i < BUSY_LOOKS; i++)
			pmi2x_ring_test(ring, request, &flag);
		raise(SIGKILL);
	}
	free(block);
	free(all);
}

__attribute__((weak)) void break_links(pmi2x_ring *r)
{
	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
		    peer.ss_family != AF_UNIX)
			shutdown(fd, SHUT_RDWR);
	}
}

static void fault_break(bool me)
{
	rounds(3);
	if (me)
		break_links(ring);
	expect_failure(SMALL);
}

/* Between the start of an operation and its end, with the block given. */
static void fault_between(bool me)
{
	char *all = allocate(SMALL * (size_t)size), block[SMALL] = "";
	pmi2x_ring_request request;

	rounds(3);
	if (me) {
		check(pmi2x_ring_iallgather(ring, block, SMALL, all, &request),
		      "iallgather");
		raise(SIGKILL);
	}
	expect_failure(SMALL);
	free(all);
}

/* A command breaks something; it is in RING_FAULT. */
static void fault_command(bool me)
{
	const char *command = getenv("RING_FAULT");

	rounds(3);
	if (me && (!command || system(command)))
		die("RING_FAULT", command ? command : "not set");
	expect_failure(SMALL);
}

/* The rank goes on without the ring, and so does its PMI session. */
static void fault_destroy(bool me)
{
	rounds(3);
	if (me)
		pmi2x_ring_destroy(ring);
	else
		expect_failure(SMALL);
}

/* One rank has joined, but does not call. */
static void fault_absent(bool me)
{
	rounds(2);
	if (!me)
		expect_failure(SMALL);
	check(PMI2_KVS_Fence(), "fence");
}

/* ---- while it is formed ---- */

/* A PMI library that does not pass on who has made it fail. */
static const pmi2x_ring_pmi wordless = {
	.get_rank = PMI2_Job_GetRank, .get_size = PMI2_Info_GetSize,
	.put = PMI2_KVS_Put, .fence = PMI2_KVS_Fence, .get = PMI2_KVS_Get,
	.get_job_attr = PMI2_Info_GetJobAttr,
	.get_node_attr = PMI2_Info_GetNodeAttr,
	.put_node_attr = PMI2_Info_PutNodeAttr,
	.ring = PMIX_Ring, .ifence = PMIX_KVS_Ifence,
	.iallgather = PMIX_Iallgather_n, .wait = PMIX_Wait, .test = PMIX_Test,
	.publish = PMI2_Nameserv_publish, .lookup = PMI2_Nameserv_lookup,
};

static int culprit;

static void tell_name(int who, bool wait)
{
	char name[32], port[PMI2_MAX_VALLEN];

	snprintf(name, sizeof(name), "ring-exercise-told-%d", who);
	if (!wait && PMI2_Nameserv_publish(name, NULL, "yes"))
		die("publish", name);
	while (wait && PMI2_Nameserv_lookup(name, NULL, port, sizeof(port)))
		sched_yield();
}

/*
 * One rank does not take part. The fence that was given up stays entered, so the job is
 * over: a rank ends it when all others have got the error.
 */
static void expect_no_ring(const pmi2x_ring_pmi *pmi)
{
	int fds = count_entries("/proc/self/fd");
	char why[PMI2X_RING_ERROR_MAX];

	if (!pmi2x_ring_create(&ring, pmi, why, sizeof(why)))
		die("create without a rank", "no error");
	say_told(why);
	nothing_is_left(fds, "a ring that was not formed");
	tell_name(rank, false);
	if (rank == (culprit == 0)) {
		for (int r = 0; r < size; r++)
			if (r != culprit)
				tell_name(r, true);
		PMI2_Abort(1, "as expected");
	}
	pause();
}

/* One rank computes, or hangs. */
static void fault_stranger(bool me)
{
	if (me)
		pause();
	expect_no_ring(NULL);
}

/* One rank has exited. */
static void fault_gone(bool me)
{
	if (me)
		raise(SIGKILL);
	expect_no_ring(NULL);
}

static void fault_gone_wordless(bool me)
{
	if (me)
		raise(SIGKILL);
	expect_no_ring(&wordless);
}

/*
 * Killed while the ring is formed, at its RING_CALL-th use of PMI: as it begins or
 * ends one, for the time between two.
 */
static int uses_left;

static int use(int code)
{
	if (--uses_left == 0)
		raise(SIGKILL);
	return code;
}

static int use_put(const char key[], const char value[])
{
	use(0);
	return use(PMI2_KVS_Put(key, value));
}

static int use_get(const char *jobid, int src, const char key[], char value[],
		   int maxvalue, int *vallen)
{
	return use(PMI2_KVS_Get(jobid, src, key, value, maxvalue, vallen));
}

static int use_get_job(const char name[], char value[], int len, int *found)
{
	return use(PMI2_Info_GetJobAttr(name, value, len, found));
}

static int use_get_node(const char name[], char value[], int len, int *found,
			int waitfor)
{
	return use(PMI2_Info_GetNodeAttr(name, value, len, found, waitfor));
}

static int use_put_node(const char name[], const char value[])
{
	return use(PMI2_Info_PutNodeAttr(name, value));
}

static int use_ring(const char value[], int *ring_rank, int *ring_size,
		    char left[], char right[], int maxvalue)
{
	use(0);
	return use(PMIX_Ring(value, ring_rank, ring_size, left, right,
			     maxvalue));
}

static int use_ifence(uint64_t *request)
{
	use(0);
	return use(PMIX_KVS_Ifence(request));
}

static void fault_joining(bool me)
{
	const char *number = getenv("RING_CALL");
	pmi2x_ring_pmi pmi = wordless;
	char why[PMI2X_RING_ERROR_MAX];
	int fds = count_entries("/proc/self/fd");

	uses_left = me && number ? atoi(number) : 0;
	pmi.capabilities = PMIX_Capabilities;
	pmi.put = use_put;
	pmi.get = use_get;
	pmi.get_job_attr = use_get_job;
	pmi.get_node_attr = use_get_node;
	pmi.put_node_attr = use_put_node;
	pmi.ring = use_ring;
	pmi.ifence = use_ifence;
	if (pmi2x_ring_create(&ring, &pmi, why, sizeof(why))) {
		say_told(why);
		nothing_is_left(fds, "a ring that was not formed");
		return;
	}
	if (me)
		raise(SIGKILL);
	expect_failure(SMALL);
}

/*
 * Killed when it has its links and says so, while the element opposite has none:
 * what that one misses is not what is wrong.
 */
#define VICTIM "ring-victim" /* the process, in the name service */

static int late_ring(const char value[], int *ring_rank, int *ring_size,
		     char left[], char right[], int maxvalue)
{
	int code = PMIX_Ring(value, ring_rank, ring_size, left, right, maxvalue);
	char pid[PMI2_MAX_ATTRVALUE];

	check(PMI2_Nameserv_lookup(VICTIM, NULL, pid, sizeof(pid)), "lookup");
	while (kill(atoi(pid), 0) == 0)
		usleep(1000);
	return code;
}

static int use_second_ifence(uint64_t *request)
{
	int code = PMIX_KVS_Ifence(request);

	use(0);
	return code;
}

static void fault_linked(bool me)
{
	pmi2x_ring_pmi pmi = wordless;
	char pid[16], why[PMI2X_RING_ERROR_MAX];

	uses_left = me ? 2 : 0;
	if (me) {
		pmi.ifence = use_second_ifence;
		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		check(PMI2_Nameserv_publish(VICTIM, NULL, pid), "publish");
	}
	check(PMI2_KVS_Fence(), "fence");
	if (rank == (culprit + size / 2) % size)
		pmi.ring = late_ring;
	if (pmi2x_ring_create(&ring, &pmi, why, sizeof(why)))
		say_told(why);
	else
		expect_failure(SMALL);
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
	pmi2x_ring_pmi pmi = wordless;
	char why[PMI2X_RING_ERROR_MAX];
	int fds = count_entries("/proc/self/fd");

	if (me)
		pmi.ring = other;
	if (pmi2x_ring_create(&ring, &pmi, why, sizeof(why))) {
		say_told(why);
	} else {
		printf("rank %d uses %s\n", rank, pmi2x_ring_transport(ring));
		all_of_it();
		pmi2x_ring_destroy(ring);
	}
	nothing_is_left(fds, "a ring that was not formed");
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
	{ "busy", fault_busy },
	{ "between", fault_between },
	{ "break", fault_break },
	{ "command", fault_command },
	{ "destroy", fault_destroy },
	{ "absent", fault_absent },
	{ "stranger", fault_stranger },
	{ "gone", fault_gone },
	{ "gone-wordless", fault_gone_wordless },
	{ "joining", fault_joining },
	{ "linked", fault_linked },
	{ "cut", fault_cut },
	{ "lie", fault_lie },
};

int ring_fault(const char *name, int who)
{
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		if (strcmp(name, faults[i].name))
			continue;
		culprit = who;
		faults[i].run(rank == who);
		return 0;
	}
	return 2;
}

