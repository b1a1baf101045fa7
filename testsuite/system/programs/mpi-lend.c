// SPDX-License-Identifier: BSD-3-Clause
/*
 * mpi-lend CASE...: two ranks with OpenMP under PMI2X_LEND=on, each bound to the core of its
 * number. A rank that expects something polls until it is so, 30 seconds at most.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG_S 30
#define BIG (8 << 20)
#define ROUNDS 5
#define STOP_US 1500000 /* longer than a rank waits for arrivals */
#define SHORT_S 0.8     /* shorter than that */
#define TIMER_US 300
#define GONE_US 50000   /* in which other ranks find out that a rank has gone */
#define FD_MAX 256

static int rank, ranks;

static bool team_is_on(int core)
{
	int seen = 0;

#pragma omp parallel reduction(+ : seen)
	{
		for (volatile int i = 0; i < 100000; i++)
			;
		seen += sched_getcpu() == core;
	}
	return seen > 0;
}

/* Compute until a thread of the team runs on the core of the other rank, or none does. */
static void expect_on_other(bool wanted)
{
	double end = MPI_Wtime() + LONG_S;

	while (team_is_on(!rank) != wanted)
		if (MPI_Wtime() > end) {
			printf("rank %d: still %s core %d\n", rank, wanted ? "not on" : "on", !rank);
			fflush(stdout);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

/* No rank waits before both of them are on their own cores: a rank that waits lends again. */
static void both_leave(void)
{
	MPI_Request requests[2];
	int token, done = 0;

	PMPI_Irecv(&token, 1, MPI_INT, !rank, 2, MPI_COMM_WORLD, &requests[0]);
	expect_on_other(false);
	PMPI_Isend(&rank, 1, MPI_INT, !rank, 2, MPI_COMM_WORLD, &requests[1]);
	while (!done) {
		team_is_on(!rank);
		PMPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
	}
	PMPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

/* A receive is waited for without a limit, unlike arrivals. */
static void wait_in_receive(int waits)
{
	int token;

	if (rank == waits) {
		MPI_Recv(&token, 1, MPI_INT, !rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	expect_on_other(true);
	MPI_Send(&rank, 1, MPI_INT, waits, 3, MPI_COMM_WORLD);
}

static void barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void test_moves(void)
{
	for (int waits = 0; waits < 2; waits++) {
		wait_in_receive(waits);
		both_leave();
	}
}

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* Signals come all the time, also in naps, and interrupt system calls. */
static void test_signals(void)
{
	struct itimerval timer = { { 0, TIMER_US }, { 0, TIMER_US } };
	struct sigaction action = { .sa_handler = on_signal };
	int before;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int waits = 0; waits < 2; waits++) {
		before = signals;
		wait_in_receive(waits);
		if (signals == before)
			MPI_Abort(MPI_COMM_WORLD, 1);
		both_leave();
	}
	for (int i = 0; i < ROUNDS; i++)
		barrier();
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Counted arrivals: the first second of a wait lends, so this needs a machine that is not slow. */
static void test_barrier(void)
{
	for (int round = 0; round < ROUNDS; round++)
		barrier();
	if (!rank)
		expect_on_other(true);
	barrier();
	both_leave();
}

/* A large message is under way in a barrier, and the receiver is late. */
static void test_isend(void)
{
	char *data = calloc(1, BIG);
	MPI_Request request;

	for (int round = 1; round <= ROUNDS; round++) {
		if (!rank) {
			memset(data, round, BIG);
			MPI_Isend(data, BIG, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &request);
			barrier();
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			continue;
		}
		usleep(50000);
		MPI_Recv(data, BIG, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		barrier();
		if (data[BIG - 1] != round)
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	free(data);
}

static void test_communicators(void)
{
	double in = rank, out, sum = ranks * (ranks - 1) / 2.;
	MPI_Request requests[2];
	MPI_Status statuses[2];
	MPI_Comm copy;
	int index;

	for (int round = 0; round < ROUNDS; round++) {
		MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &copy);
		MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, copy);
		if (out != sum)
			MPI_Abort(MPI_COMM_WORLD, 1);
		MPI_Irecv(&out, 1, MPI_DOUBLE, !rank, 1, MPI_COMM_WORLD, &requests[0]);
		MPI_Isend(&in, 1, MPI_DOUBLE, !rank, 1, MPI_COMM_WORLD, &requests[1]);
		MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
		MPI_Waitall(2, requests, statuses);
		if (out != !rank)
			MPI_Abort(MPI_COMM_WORLD, 1);
		MPI_Comm_free(&copy);
	}
}

/* The process of rank 1 goes on as another program, which holds no lock. */
static void test_exec(void)
{
	int first = getpid();
	char option[32];

	MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
	snprintf(option, sizeof(option), "--pid=%d", first);
	if (rank)
		execlp("tail", "tail", option, "-f", "/dev/null", NULL);
	expect_on_other(true);
	printf("rank 0 uses core 1\n");
	fflush(stdout);
	kill(getpid(), SIGKILL);
}

/* A child of fork runs on all cores of its rank, and takes no part. */
static void test_fork(void)
{
	int status = 0;

	wait_in_receive(1);
	if (!rank && !fork())
		_exit(sched_getcpu() == rank ? 0 : 1);
	if (!rank && (wait(&status) < 0 || status))
		MPI_Abort(MPI_COMM_WORLD, 1);
	both_leave();
}

static void test_stop(void)
{
	pid_t self = getpid();

	if (rank && !fork()) {
		kill(self, SIGSTOP);
		usleep(STOP_US);
		kill(self, SIGCONT);
		_exit(0);
	}
	for (int i = 0; i < ROUNDS; i++)
		barrier();
}

/* Rank 1 writes over the ledger, in any order with what rank 0 does there. */
static void test_scribble(void)
{
	unsigned int seed = 1, *memory = NULL;
	unsigned long begin, end = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "pmi2x-lend (deleted)") &&
		    sscanf(line, "%lx-%lx", &begin, &end) == 2)
			memory = (unsigned int *)begin;
	if (!memory)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < 2000; i++) {
		if (rank)
			memory[(unsigned int)rand_r(&seed) % ((end - begin) / sizeof(*memory))] =
				(unsigned int)rand_r(&seed) & 3;
		if (!(i % 100))
			team_is_on(0);
		if (!(i % 500))
			barrier();
	}
}

static int table_fd(void)
{
	char name[32], target[128];
	ssize_t n;

	for (int fd = 0; fd < FD_MAX; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (strstr(target, "pmi2x-lend"))
			return fd;
	}
	MPI_Abort(MPI_COMM_WORLD, 1);
	return -1;
}

/* Rank 1 has lost its lock, and counts as gone. Rank 0 does not, also when it has waited. */
static void without_lock(void)
{
	int token = 0;

	if (rank) {
		usleep(GONE_US);
		MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
	} else {
		MPI_Recv(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	wait_in_receive(1);
}

static void test_closed(void)
{
	PMPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		dup2(open("/dev/null", O_RDONLY), table_fd());
	without_lock();
}

static void test_duplicated(void)
{
	PMPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		close(dup(table_fd()));
	without_lock();
}

/* Rank 1 is in MPI_Finalize. */
static void test_early(void)
{
	if (!rank)
		expect_on_other(true);
}

/* Calls of rank 1 that are not counted: rank 0 stops counting, too. */
static void test_uncounted(void)
{
	int (*uncounted)(MPI_Comm);
	Dl_info mpi;
	void *library;

	dladdr(dlsym(RTLD_DEFAULT, "PMPI_Comm_rank"), &mpi);
	library = dlopen(mpi.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	uncounted = (int (*)(MPI_Comm))dlsym(library, "PMPI_Barrier");
	for (int i = 0; i < 100; i++)
		if (rank)
			uncounted(MPI_COMM_WORLD);
		else
			barrier();
}

/* A profiler calls PMPI_X, which lends like MPI_X. */
static void test_profiled(void)
{
	int token;

	if (rank) {
		PMPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		expect_on_other(true);
		MPI_Send(&rank, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
	}
	for (int i = 0; i < ROUNDS; i++)
		if (rank)
			PMPI_Barrier(MPI_COMM_WORLD);
		else
			barrier();
}

/* ---- calls in which rank 1 waits, while rank 0 computes ---- */

static void ssend(void)
{
	int token = 7;

	if (rank)
		MPI_Ssend(&token, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
	else
		MPI_Recv(&token, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (token != 7)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void send_large(void)
{
	char *data = calloc(1, BIG);

	if (rank) {
		data[BIG - 1] = 7;
		MPI_Send(data, BIG, MPI_CHAR, 0, 4, MPI_COMM_WORLD);
	} else {
		MPI_Recv(data, BIG, MPI_CHAR, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (data[BIG - 1] != 7)
		MPI_Abort(MPI_COMM_WORLD, 1);
	free(data);
}

static void sendrecv(void)
{
	MPI_Status status;
	int got = -1, count;

	MPI_Sendrecv(&rank, 1, MPI_INT, !rank, 4 + rank, &got, 1, MPI_INT, MPI_ANY_SOURCE,
		     MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_INT, &count);
	if (got != !rank || status.MPI_SOURCE != !rank || status.MPI_TAG != 4 + !rank ||
	    count != 1)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check_found(const MPI_Status *status, int token)
{
	int count;

	MPI_Get_count(status, MPI_INT, &count);
	if (status->MPI_SOURCE != 0 || status->MPI_TAG != 4 || count != 1 || token != 7)
		MPI_Abort(MPI_COMM_WORLD, 1);
}

static void probe(void)
{
	MPI_Status status;
	int token = 7;

	if (!rank) {
		MPI_Send(&token, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
		return;
	}
	MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	token = 0;
	MPI_Recv(&token, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_found(&status, token);
}

static void mprobe(void)
{
	MPI_Message message;
	MPI_Status status;
	int token = 7;

	if (!rank) {
		MPI_Send(&token, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
		return;
	}
	MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
	token = 0;
	MPI_Mrecv(&token, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
	check_found(&status, token);
}

static void test_messages(void)
{
	void (*const calls[])(void) = { ssend, send_large, sendrecv, probe, mprobe };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (!rank)
			expect_on_other(true);
		calls[i]();
		both_leave();
	}
}

static int handled, handled_class;

static void on_error(MPI_Comm *c, int *code, ...)
{
	(void)c;
	MPI_Error_class(*code, &handled_class);
	handled++;
}

/* Calls of MPICH 5 return 0 after a handler of the program. */
static void expect_truncated(int rc)
{
	int class = handled_class;

	if (rc)
		MPI_Error_class(rc, &class);
	if (class != MPI_ERR_TRUNCATE || handled != 1) {
		printf("rank %d: class %d, and %d calls of the handler\n", rank, class, handled);
		fflush(stdout);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	handled = 0;
}

/* Errors come by the handler of the communicator on which the message came. */
static void test_truncation(void)
{
	int out[2] = { 7, 7 }, in[3];
	MPI_Errhandler handler;
	MPI_Request r[2];
	MPI_Status s[2];
	MPI_Comm c;

	MPI_Comm_dup(MPI_COMM_WORLD, &c);
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(c, handler);
	MPI_Isend(out, 2, MPI_INT, !rank, 4, c, &r[0]);
	expect_truncated(MPI_Recv(in, 1, MPI_INT, !rank, 4, c, s));
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	expect_truncated(MPI_Sendrecv(out, 2, MPI_INT, !rank, 4, in, 1, MPI_INT, !rank, 4, c, s));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler); /* of MPI_Wait in MPICH */
	MPI_Irecv(in, 1, MPI_INT, !rank, 4, c, &r[0]);
	MPI_Isend(out, 2, MPI_INT, !rank, 4, c, &r[1]);
	expect_truncated(MPI_Wait(&r[0], s));
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	MPI_Comm_free(&c);
	MPI_Errhandler_free(&handler);
}

/* All of a Waitall: that of the world has the error. */
static void test_waits_with_errors(void)
{
	int out[2] = { 7, 7 }, in[3], class;
	MPI_Comm c = MPI_COMM_WORLD;
	MPI_Request r[3];
	MPI_Status s[3];

	MPI_Irecv(in, 1, MPI_INT, !rank, 4, c, &r[0]);
	MPI_Irecv(in + 1, 2, MPI_INT, !rank, 5, c, &r[1]);
	MPI_Isend(out, 2, MPI_INT, !rank, 4, c, &r[2]);
	MPI_Send(out, 2, MPI_INT, !rank, 5, c);
	MPI_Error_class(MPI_Waitall(3, r, s), &class);
	if (class != MPI_ERR_IN_STATUS)
		MPI_Abort(c, 1);
	MPI_Error_class(s[0].MPI_ERROR, &class);
	if (class != MPI_ERR_TRUNCATE || in[2] != 7)
		MPI_Abort(c, 1);
}

/* A wrong rank is an error of the call, and no receive stays behind. */
static void test_errors(void)
{
	int token = 7, wrong = ranks + 5;
	MPI_Comm c = MPI_COMM_WORLD;

	MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
	if (!MPI_Send(&token, 1, MPI_INT, wrong, 4, c) ||
	    !MPI_Ssend(&token, 1, MPI_INT, wrong, 4, c) ||
	    !MPI_Probe(wrong, 4, c, MPI_STATUS_IGNORE) ||
	    !MPI_Sendrecv(&token, 1, MPI_INT, wrong, 4, &token, 1, MPI_INT, !rank, 4, c,
			  MPI_STATUS_IGNORE))
		MPI_Abort(c, 1);
	MPI_Sendrecv(&rank, 1, MPI_INT, !rank, 4, &token, 1, MPI_INT, !rank, 4, c,
		     MPI_STATUS_IGNORE);
	if (token != !rank)
		MPI_Abort(c, 1);
	MPI_Send(&token, 1, MPI_INT, MPI_PROC_NULL, 4, c);
	MPI_Probe(MPI_PROC_NULL, 4, c, MPI_STATUS_IGNORE);
	test_waits_with_errors();
	MPI_Comm_set_errhandler(c, MPI_ERRORS_ARE_FATAL);
	test_truncation();
}

static int is_on_other_soon(void)
{
	double end = MPI_Wtime() + SHORT_S;

	while (!team_is_on(!rank))
		if (MPI_Wtime() > end)
			return 0;
	return 1;
}

/* Rank 1 waits for a second, and a thread of rank 0 is on its core in the end. */
static void test_second(void)
{
	double end;
	int token = 0;

	PMPI_Barrier(MPI_COMM_WORLD);
	end = MPI_Wtime() + 1;
	if (rank) {
		MPI_Recv(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	while (MPI_Wtime() < end)
		team_is_on(1);
	expect_on_other(true);
	MPI_Send(&token, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
}

/* Both ranks get what rank 0 has seen. */
static int bcast(int seen)
{
	MPI_Bcast(&seen, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return seen;
}

static int scatter(int seen)
{
	int all[2] = { seen, seen };

	MPI_Scatter(all, 1, MPI_INT, &seen, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return seen;
}

static int reduce(int seen)
{
	int sum = 0;

	MPI_Reduce(&seen, &sum, 1, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
	return rank ? sum : seen;
}

static int gather(int seen)
{
	int all[2] = { 0, 0 };

	MPI_Gather(&seen, 1, MPI_INT, all, 1, MPI_INT, 1, MPI_COMM_WORLD);
	return rank ? all[0] : seen;
}

/* Arrivals are waited for a second only, so a slow machine needs more rounds. */
static void test_rooted(void)
{
	int (*const calls[])(int) = { bcast, scatter, reduce, gather };

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		int seen = 0;

		for (int round = 0; !seen && round < LONG_S; round++)
			seen = calls[i](rank ? 0 : is_on_other_soon());
		if (!seen)
			MPI_Abort(MPI_COMM_WORLD, 1);
		both_leave();
	}
}

/* Members in another order, and a root whose number in the world is another. */
static void test_roots(void)
{
	int value, sum, all[2];
	MPI_Comm copy;

	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &copy);
	for (int root = 0; root < 2 * ROUNDS; root++) {
		value = rank == !(root % 2) ? root : -1;
		MPI_Bcast(&value, 1, MPI_INT, root % 2, copy);
		MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, root % 2, copy);
		MPI_Gather(&value, 1, MPI_INT, all, 1, MPI_INT, root % 2, copy);
		if (value != root || (rank == !(root % 2) &&
				      (sum != 2 * root || all[0] != root || all[1] != root)))
			MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Comm_free(&copy);
}

/*
 * Ranks 0 and 1 are on a node, 2 and 3 on another one, which has the same cores here. The latter
 * two wait, and no thread of rank 0 goes to the core of rank 1, which computes.
 */
static void test_nodes(void)
{
	int other = rank ^ 1, token = 0, done = 0;
	MPI_Request requests[2];

	if (ranks != 4)
		MPI_Abort(MPI_COMM_WORLD, 1);
	if (rank > 1) {
		MPI_Recv(&token, 1, MPI_INT, rank - 2, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	PMPI_Irecv(&token, 1, MPI_INT, other, 2, MPI_COMM_WORLD, &requests[0]);
	for (int i = 0; i < 20 * ROUNDS; i++)
		if (team_is_on(other))
			MPI_Abort(MPI_COMM_WORLD, 1);
	PMPI_Isend(&rank, 1, MPI_INT, other, 2, MPI_COMM_WORLD, &requests[1]);
	while (!done)
		PMPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
	PMPI_Wait(&requests[1], MPI_STATUS_IGNORE);
	MPI_Send(&token, 1, MPI_INT, rank + 2, 3, MPI_COMM_WORLD);
}

/* Without data no rank waits for another one, but calls are counted: a barrier still lends. */
static void test_empty(void)
{
	int value = rank;

	for (int i = 0; i < ROUNDS; i++) {
		if (!rank)
			MPI_Recv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
		if (rank)
			MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
		else
			MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
		if (rank)
			MPI_Reduce(NULL, NULL, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	}
	test_barrier();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "moves", test_moves },     { "signals", test_signals },
	{ "early", test_early },     { "closed", test_closed },   { "duplicated", test_duplicated },
	{ "barrier", test_barrier },
	{ "isend", test_isend },
	{ "communicators", test_communicators },
	{ "exec", test_exec },       { "fork", test_fork },
	{ "stop", test_stop },       { "scribble", test_scribble },
	{ "uncounted", test_uncounted }, { "profiled", test_profiled },
	{ "messages", test_messages }, { "errors", test_errors },
	{ "second", test_second },
	{ "rooted", test_rooted },   { "roots", test_roots },
	{ "empty", test_empty },     { "nodes", test_nodes },
};

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (int arg = 1; arg < argc; arg++)
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			if (!strcmp(argv[arg], cases[i].name))
				cases[i].run();
	printf("rank %d threads %d ok\n", rank, omp_get_max_threads());
	MPI_Finalize();
	return 0;
}
