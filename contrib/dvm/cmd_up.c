/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm up and down. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "dvm.h"
#include "headd.h"
#include "libutil/decimal.h"

#define HEAD_ARGS_MAX 64

struct up {
	const char *name;
	uint32_t nodes;
	bool local;
	const char *journal; /* its directory, or NULL */
	char *args[HEAD_ARGS_MAX]; /* of the head */
	int nargs;
	char dir[DVM_PATH_MAX];
	char address[DVM_PATH_MAX]; /* for clients on other nodes; or "" */
	char own[DVM_PATH_MAX];    /* where the programs are */
};

static void add(struct up *u, const char *option, const char *value)
{
	if (u->nargs + 3 > HEAD_ARGS_MAX)
		die_usage("too many options");
	u->args[u->nargs++] = (char *)(uintptr_t)option;
	if (value)
		u->args[u->nargs++] = (char *)(uintptr_t)value;
}

/* ---- options ---- */

static void check_slots(const char *text)
{
	uint32_t number;

	if (strcmp(text, "core") && strcmp(text, "thread") &&
	    !decimal_u32(text, 1, DVM_CORES_MAX, &number))
		die_usage("--slots is core, thread or a number up to %d",
			  DVM_CORES_MAX);
}

static void check_number(const char *option, const char *text, uint32_t max)
{
	uint32_t number;

	if (!decimal_u32(text, 0, max, &number))
		die_usage("%s must be a number up to %u", option, max);
}

static void take_counter(struct up *u, const char *text)
{
	const char *equals = strchr(text, '=');

	if (!equals || equals == text)
		die_usage("--counter is NAME=NUMBER");
	check_number("--counter", equals + 1, INT32_MAX);
	add(u, "-c", text);
}

static char *thousand(const char *option, const char *seconds)
{
	char *ms;

	check_number(option, seconds, INT32_MAX / 1000);
	if (asprintf(&ms, "%s000", seconds) < 0)
		die("out of memory");
	return ms;
}

static void take_journal(struct up *u, const char *dir, bool resume)
{
	if (u->journal)
		die_usage("--journal DIR begins a journal, --resume DIR goes on with one: give one of them");
	u->journal = dir;
	add(u, "-J", dir);
	if (resume)
		add(u, "-R", NULL);
}

static void take_option(struct up *u, int option, const char *value)
{
	switch (option) {
	case 'N':
	case 'l':
		if (!decimal_u32(value, 1, LEDGER_NODES_MAX, &u->nodes))
			die_usage("the number of nodes must be from 1 to %u",
				  LEDGER_NODES_MAX);
		u->local = option == 'l';
		break;
	case 'n': u->name = value; break;
	case 's': check_slots(value); add(u, "-s", value); break;
	case 'G': check_number("--gpus", value, LEDGER_GPUS_MAX);
		add(u, "-G", value); break;
	case 'L': add(u, "-L", value); break;
	case 'c': take_counter(u, value); break;
	case 'g': add(u, "-g", thousand("--grace", value)); break;
	case 'p': add(u, "-p", thousand("--patience", value)); break;
	case 'w': add(u, "-w", thousand("--within", value)); break;
	case 'm': check_number("--max-queued", value, INT32_MAX);
		add(u, "-m", value); break;
	case 'J':
	case 'R': take_journal(u, value, option == 'R'); break;
	case 'O': add(u, "-O", NULL); break;
	case 'F': add(u, "-F", NULL); break;
	case 'o':
		if (strcmp(value, "fifo") && strcmp(value, "large"))
			die_usage("--order is fifo or large");
		add(u, "-o", value); break;
	default: die_usage("up: there is no such option, or its value is missing");
	}
}

static void take_options(struct up *u, int argc, char **argv)
{
	static const struct option options[] = {
		{ "nodes", required_argument, NULL, 'N' },
		{ "local", required_argument, NULL, 'l' },
		{ "name", required_argument, NULL, 'n' },
		{ "slots", required_argument, NULL, 's' },
		{ "gpus", required_argument, NULL, 'G' },
		{ "launcher", required_argument, NULL, 'L' },
		{ "counter", required_argument, NULL, 'c' },
		{ "grace", required_argument, NULL, 'g' },
		{ "patience", required_argument, NULL, 'p' },
		{ "within", required_argument, NULL, 'w' },
		{ "max-queued", required_argument, NULL, 'm' },
		{ "order", required_argument, NULL, 'o' },
		{ "journal", required_argument, NULL, 'J' },
		{ "resume", required_argument, NULL, 'R' },
		{ "once", no_argument, NULL, 'O' },
		{ "fast", no_argument, NULL, 'F' },
		{ 0 },
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+N:", options, NULL)) != -1)
		take_option(u, option, optarg);
	if (optind < argc)
		die_usage("up: what is %s?", argv[optind]);
}

/* All nodes of the allocation, unless told otherwise. */
static void find_nodes(struct up *u)
{
	const char *job = getenv("SLURM_JOB_ID");
	const char *nodes = getenv("SLURM_JOB_NUM_NODES");

	if (u->local)
		return;
	if (!job)
		die("this is no Slurm allocation: run it inside salloc or sbatch, or give --local N");
	if (!u->nodes && (!nodes || !decimal_u32(nodes, 1, LEDGER_NODES_MAX,
						 &u->nodes)))
		die("SLURM_JOB_NUM_NODES does not say how many nodes the job has: give -N");
}

/* ---- starting the head ---- */

/* A head on one machine has no clients on others. */
static void make_address(struct up *u)
{
	char *slash;

	if (u->local || !dvm_address(u->address, u->name)) {
		*u->address = '\0';
		return;
	}
	slash = strrchr(u->address, '/');
	*slash = '\0';
	(void)mkdir(u->address, 0700); /* without it, the head says so */
	*slash = '/';
}

static void make_dir(struct up *u)
{
	dvm_dir(u->dir, u->name);
	if (dvm_is_up(u->name))
		die("the DVM %s is up already: end it with pmi2x-dvm down, or give --name another one",
		    u->name);
	if (mkdir(u->dir, 0700) < 0 && errno != EEXIST)
		die("cannot make %s: %s", u->dir, strerror(errno));
	make_address(u);
}

static void find_own(struct up *u)
{
	const char *given = getenv("PMI2X_DVM_LIBEXEC");
	ssize_t n;
	char *slash;

	if (given) {
		snprintf(u->own, sizeof(u->own), "%s", given);
		return;
	}
	n = readlink("/proc/self/exe", u->own, sizeof(u->own) - 64);
	u->own[n > 0 ? n : 0] = '\0';
	slash = strrchr(u->own, '/');
	strcpy(slash ? slash : u->own, "/../libexec/pmi2x");
	if (access(u->own, X_OK) < 0)
		snprintf(u->own, sizeof(u->own), "%s", PKGLIBEXECDIR);
}

static void become_head(struct up *u, int hold)
{
	char program[DVM_PATH_MAX + 32], number[16], nodes[16], log[DVM_PATH_MAX + 8];
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(program, sizeof(program), "%s/pmi2x-dvm-head", u->own);
	snprintf(log, sizeof(log), "%s/" HEADD_LOG, u->dir);
	snprintf(number, sizeof(number), "%d", hold);
	snprintf(nodes, sizeof(nodes), "%u", u->nodes);
	u->args[0] = program;
	add(u, "-n", u->name);
	add(u, "-d", u->dir);
	add(u, "-N", nodes);
	add(u, "-H", number);
	if (u->local)
		add(u, "-l", NULL);
	if (*u->address)
		add(u, "-A", u->address);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 ||
	    dup2(fd, 2) < 0)
		die("cannot write %s: %s", log, strerror(errno));
	setsid();
	u->args[u->nargs] = NULL;
	execv(program, u->args);
	dprintf(hold, "failed cannot execute %s: %s\n", program, strerror(errno));
	_exit(126);
}

static pid_t head;

static void start_head(struct up *u, int *hold)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("no pipe can be made: %s", strerror(errno));
	head = fork();
	if (head < 0)
		die("no process can be made: %s", strerror(errno));
	if (!head) {
		fcntl(ends[1], F_SETFD, 0);
		become_head(u, ends[1]);
	}
	close(ends[1]);
	*hold = ends[0];
}

/* Its words, until it is ready or has failed. 0 or 1. */
static int wait_ready(const struct up *u, int hold)
{
	FILE *in = fdopen(hold, "r");
	bool tty = isatty(STDERR_FILENO);
	char line[2048];

	while (in && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, "up ", 3) && tty)
			fprintf(stderr, "\r%s of %u nodes are up", line + 3,
				u->nodes);
		if (!strcmp(line, "ready")) {
			fprintf(stderr, tty ? "\n" : "");
			return 0;
		}
		if (!strncmp(line, "note ", 5))
			fprintf(stderr, "%spmi2x-dvm: %s\n", tty ? "\n" : "", line + 5);
		if (!strncmp(line, "failed ", 7))
			die("%s%s", tty ? "\n" : "", line + 7);
	}
	die("the head has ended: see %s/" HEADD_LOG, u->dir);
}

static void default_name(struct up *u)
{
	static char name[DVM_PATH_MAX];

	if (u->name)
		return;
	dvm_default_name(name, u->local);
	u->name = name;
}

int cmd_up(int argc, char **argv)
{
	static struct up u = { .nargs = 1 };
	int hold, rc;

	take_options(&u, argc, argv);
	find_nodes(&u);
	default_name(&u);
	make_dir(&u);
	find_own(&u);
	start_head(&u, &hold);
	rc = wait_ready(&u, hold);
	printf("DVM %s is up: %u nodes\n", u.name, u.nodes);
	return rc;
}

static void pass_on(int number)
{
	kill(head, number);
}

void up_pass_on_terminate(void)
{
	const struct sigaction action = { .sa_handler = pass_on, .sa_flags = SA_RESTART };

	sigaction(SIGTERM, &action, NULL);
}

/* ---- down ---- */

int cmd_down(int argc, char **argv)
{
	static const struct option options[] = {
		{ "dvm", required_argument, NULL, 'd' },
		{ "wait", no_argument, NULL, 'w' },
		{ "cancel", no_argument, NULL, 'c' },
		{ "keep", no_argument, NULL, 'k' },
		{ 0 },
	};
	const char *name = NULL, *work = "refuse";
	struct conn *c;
	json_t *event;
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1)
		if (option == 'd')
			name = optarg;
		else if (option == 'w' || option == 'c' || option == 'k')
			work = option == 'w' ? "wait" :
			       option == 'c' ? "cancel" : "keep";
		else
			die_usage("down: there is no such option");
	c = conn_open(name);
	json_decref(conn_ask(c, json_pack("{s:s,s:s}", "op", "down", "work",
					  work)));
	while ((event = conn_next(c))) /* until it has gone */
		json_decref(event);
	conn_close(c);
	return 0;
}
