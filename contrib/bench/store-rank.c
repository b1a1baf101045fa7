/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of pmi2x bench store. Arguments: an operation, the file in which ranks meet
 * (bench_meet.c), the number of rounds, the process that serves the keys (0: the agents
 * of the step), bytes of a value, and for "command" a command.
 *
 *   all      each rank sets a key, and waits for and gets the keys of all ranks
 *   one      all ranks wait for and get one key, which rank 0 sets when all wait
 *   barrier  all ranks add 1 to a key, and wait for another one, which the last rank sets
 *   command  all ranks run a command, with the number of the round in ROUND
 *
 * A rank prints a line for each round: "stamp ROUND RANK BEGIN END", in seconds of
 * CLOCK_MONOTONIC. Rank 0 prints "server ROUND SECONDS SUM" too: the processor time of the
 * busiest server, and that of all servers.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent_process.h"
#include "bench_rank.h"
#include "tcp_store.h"

#define VALUE_MAX 2048  /* bytes */
#define SERVERS_MAX 4096
#define KEY_ROOM 64
#define SETTLE_MS 2000 /* until all ranks wait for a key */

struct work {
	int rank, size, fd;
	struct bench_meeting *meeting;
	size_t bytes;
	const char *command;
	double begin; /* of the round */
};

struct servers {
	pid_t pids[SERVERS_MAX];
	unsigned n;
	double before[SERVERS_MAX]; /* seconds of processor time */
};

struct operation {
	const char *name;
	bool connects;
	void (*run)(struct work *w, int round);
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int number_of(const char *name, int otherwise)
{
	const char *text = getenv(name);

	return text ? atoi(text) : otherwise;
}

/* ---- operations ---- */

static void make_key(char key[KEY_ROOM], const char *kind, int round, int rank)
{
	snprintf(key, KEY_ROOM, "%s/%d/%d", kind, round, rank);
}

/* Begins with the key, so that a wrong value is seen. */
static void set_value(const struct work *w, const char *key)
{
	char value[VALUE_MAX] = "";

	snprintf(value, sizeof(value), "%s", key);
	tcp_store_set(w->fd, key, value, w->bytes);
}

static void get_value(const struct work *w, const char *key)
{
	char value[VALUE_MAX] = "";

	tcp_store_wait(w->fd, key);
	if (tcp_store_get(w->fd, key, value, sizeof(value)) != w->bytes ||
	    strncmp(value, key, w->bytes)) {
		fprintf(stderr, "wrong value of key %s\n", key);
		exit(1);
	}
}

static void run_all(struct work *w, int round)
{
	char key[KEY_ROOM];

	make_key(key, "all", round, w->rank);
	set_value(w, key);
	for (int i = 0; i < w->size; i++) {
		make_key(key, "all", round, i);
		get_value(w, key);
	}
}

static void run_one(struct work *w, int round)
{
	const struct timespec settle = { SETTLE_MS / 1000, SETTLE_MS % 1000 * 1000000 };
	char key[KEY_ROOM];

	make_key(key, "one", round, 0);
	if (w->rank == 0) {
		nanosleep(&settle, NULL);
		w->begin = now();
		set_value(w, key);
	}
	get_value(w, key);
}

static void run_barrier(struct work *w, int round)
{
	char count[KEY_ROOM], done[KEY_ROOM];

	make_key(count, "count", round, 0);
	make_key(done, "done", round, 0);
	if (tcp_store_add(w->fd, count, 1) == w->size)
		tcp_store_set(w->fd, done, "1", 1);
	tcp_store_wait(w->fd, done);
}

static void run_command(struct work *w, int round)
{
	char text[16];
	int status;
	pid_t child;

	snprintf(text, sizeof(text), "%d", round);
	setenv("ROUND", text, 1);
	child = fork();
	if (!child) {
		execl("/bin/sh", "sh", "-c", w->command, (char *)NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status) {
		fprintf(stderr, "the command has failed\n");
		exit(1);
	}
}

static const struct operation operations[] = {
	{ "all", true, run_all },
	{ "one", true, run_one },
	{ "barrier", true, run_barrier },
	{ "command", false, run_command },
};

/* ---- servers ---- */

static double seconds_of_thread(pid_t pid, const char *thread)
{
	unsigned long long ns = 0;
	char path[320];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, thread);
	file = fopen(path, "r");
	if (file && fscanf(file, "%llu", &ns) != 1)
		ns = 0;
	if (file)
		fclose(file);
	return ns / 1e9;
}

static double seconds_of(pid_t pid)
{
	const struct dirent *entry;
	double sum = 0;
	char path[64];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (atoi(entry->d_name) > 0)
			sum += seconds_of_thread(pid, entry->d_name);
	if (tasks)
		closedir(tasks);
	return sum;
}

static void find_servers(struct servers *s, pid_t pid)
{
	char step[64];

	s->n = pid != 0;
	s->pids[0] = pid;
	if (pid)
		return;
	snprintf(step, sizeof(step), "%d.%d", number_of("SLURM_JOB_ID", 0),
		 number_of("SLURM_STEP_ID", 0));
	s->n = agent_processes("pmi2x-agent", step, s->pids, SERVERS_MAX);
}

static void begin_count(struct servers *s)
{
	for (unsigned i = 0; i < s->n; i++)
		s->before[i] = seconds_of(s->pids[i]);
}

static void print_servers(const struct servers *s, int round)
{
	double most = 0, sum = 0;

	for (unsigned i = 0; i < s->n; i++) {
		double used = seconds_of(s->pids[i]) - s->before[i];

		sum += used;
		most = used > most ? used : most;
	}
	printf("server %d %.9f %.9f\n", round, most, sum);
}

/* ---- rounds ---- */

static void run_round(const struct operation *op, struct work *w, struct servers *s, int round)
{
	double end;

	bench_meet(w->meeting, w->size);
	if (!w->rank)
		begin_count(s);
	bench_meet(w->meeting, w->size);
	w->begin = now();
	op->run(w, round);
	end = now();
	bench_meet(w->meeting, w->size);
	printf("stamp %d %d %.9f %.9f\n", round, w->rank, w->begin, end);
	if (!w->rank)
		print_servers(s, round);
}

static const struct operation *operation_of(const char *name)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(name, operations[i].name))
			return &operations[i];
	return NULL;
}

/* An agent that serves a node starts with the first query. */
static void open_store(struct work *w)
{
	const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	char key[KEY_ROOM];

	w->fd = tcp_store_connect(host ? host : "", port ? port : "");
	make_key(key, "open", 0, w->rank);
	set_value(w, key);
	get_value(w, key);
}

int main(int argc, char **argv)
{
	const struct operation *op = argc > 5 ? operation_of(argv[1]) : NULL;
	static struct servers servers;
	struct work w = {
		.rank = number_of("SLURM_PROCID", 0), .size = number_of("SLURM_NTASKS", 1),
	};

	w.meeting = op ? bench_meet_open(argv[2]) : NULL;
	if (!w.meeting) {
		fprintf(stderr, "usage: store-rank OPERATION FILE ROUNDS PID BYTES [COMMAND]\n");
		return 2;
	}
	w.bytes = (size_t)atoi(argv[5]);
	w.command = argc > 6 ? argv[6] : "";
	if (op->connects)
		open_store(&w);
	bench_meet(w.meeting, w.size);
	if (!w.rank)
		find_servers(&servers, atoi(argv[4]));
	for (int round = 0; round < atoi(argv[3]); round++)
		run_round(op, &w, &servers, round);
	return 0;
}
