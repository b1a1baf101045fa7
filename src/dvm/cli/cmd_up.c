/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm up. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/find.h"
#include "dvm/cli/interrupt.h"
#include "dvm/cli/options.h"
#include "dvm/common/inherited_fds.h"
#include "dvm/common/journal_file.h"
#include "dvm/common/rundir.h"
#include "dvm/common/self_path.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"

#define HEAD_ARGS_MAX 64

struct up {
	const char *name;
	uint32_t nodes;
	uint32_t dvms;       /* under this name; 0: one that has the name itself */
	uint32_t dvm_nodes;  /* or, the nodes of each; 0: as many as come out */
	bool local;
	const char *journal; /* its directory, or NULL */
	const char *orphan;  /* --orphan, or NULL */
	bool take_over;      /* --take-over */
	bool ends;           /* with its last client: of batch */
	char *args[HEAD_ARGS_MAX]; /* of the head */
	int nargs;
	char own[DVM_PATH_MAX];    /* where the programs are */
};

/* A DVM that is being started. */
struct start {
	char name[DVM_PATH_MAX / 2];
	char dir[DVM_PATH_MAX];
	char address[DVM_PATH_MAX]; /* for clients on other nodes; or "" */
	uint32_t member;    /* of several, from 1; 0: it is the only one */
	uint32_t first, nodes; /* of those of the job */
	pid_t head;
	int hold;           /* its words */
	int lock;           /* of the directory, until the head has it */
};

static uint32_t starts(const struct up *u)
{
	return u->dvms ? u->dvms : 1;
}

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
		die_usage("--journal DIR starts a new journal, --resume DIR continues one: give one of the two");
	json_decref(user_text("the name of the journal", dir));
	u->journal = dir;
	if (resume)
		add(u, "-R", NULL);
}

static void take_dvms(uint32_t *out, const char *option, const char *value, uint32_t max)
{
	if (!decimal_u32(value, 1, max, out))
		die_usage("%s must be a number from 1 to %u", option, max);
}

static void take_name(struct up *u, const char *name)
{
	char copy[DVM_PATH_MAX];
	uint32_t number;

	snprintf(copy, sizeof(copy), "%s", name);
	if (dvm_split_name(copy, &number))
		die_usage("\"%s\" is the name of one of several DVMs: give --name %s and --dvms",
			  name, copy);
	json_decref(user_text("the name of the DVM", name));
	u->name = name;
}

static void take_option(struct up *u, char **argv, int option, const char *value)
{
	switch (option) {
	case 'D': take_dvms(&u->dvms, "--dvms", value, DVM_MEMBERS_MAX); break;
	case 'M': take_dvms(&u->dvm_nodes, "--dvm-nodes", value, LEDGER_NODES_MAX); break;
	case 'S': add(u, "-S", NULL); break;
	case 'l': value = local_nodes(argv, value); /* fall through */
	case 'N':
		if (!decimal_u32(value, 1, LEDGER_NODES_MAX, &u->nodes))
			die_usage("the number of nodes must be from 1 to %u",
				  LEDGER_NODES_MAX);
		u->local = option == 'l';
		break;
	case 'n': take_name(u, value); break;
	case 's': check_slots(value); add(u, "-s", value); break;
	case 'G': check_number("--gpus", value, LEDGER_GPUS_MAX);
		add(u, "-G", value); break;
	case 'L': add(u, "-L", value); break;
	case 'c': take_counter(u, value); break;
	case 'g': add(u, "-g", thousand("--grace", value)); break;
	case 'p': add(u, "-p", thousand("--patience", value)); break;
	case 'w': add(u, "-w", thousand("--within", value)); break;
	case 'W': check_number("--orphan", value, INT32_MAX / 1000);
		u->orphan = value;
		add(u, "-W", value); break;
	case 'm': check_number("--max-queued", value, INT32_MAX);
		add(u, "-m", value); break;
	case 'J':
	case 'R': take_journal(u, value, option == 'R'); break;
	case 'O': add(u, "-O", NULL); break;
	case 'F': add(u, "-F", NULL); break;
	case 'T':
		u->take_over = true;
		add(u, "-T", NULL); break;
	case 'o':
		if (strcmp(value, "fifo") && strcmp(value, "large"))
			die_usage("--order is fifo or large");
		add(u, "-o", value); break;
	default: die_option(argv, option);
	}
}

static void take_options(struct up *u, int argc, char **argv)
{
	static const struct option options[] = {
		{ "nodes", required_argument, NULL, 'N' },
		{ "local", optional_argument, NULL, 'l' },
		{ "dvms", required_argument, NULL, 'D' },
		{ "dvm-nodes", required_argument, NULL, 'M' },
		{ "share", no_argument, NULL, 'S' },
		{ "name", required_argument, NULL, 'n' },
		{ "slots", required_argument, NULL, 's' },
		{ "gpus", required_argument, NULL, 'G' },
		{ "launcher", required_argument, NULL, 'L' },
		{ "counter", required_argument, NULL, 'c' },
		{ "grace", required_argument, NULL, 'g' },
		{ "patience", required_argument, NULL, 'p' },
		{ "within", required_argument, NULL, 'w' },
		{ "orphan", required_argument, NULL, 'W' },
		{ "max-queued", required_argument, NULL, 'm' },
		{ "order", required_argument, NULL, 'o' },
		{ "journal", required_argument, NULL, 'J' },
		{ "resume", required_argument, NULL, 'R' },
		{ "once", no_argument, NULL, 'O' },
		{ "fast", no_argument, NULL, 'F' },
		{ "take-over", no_argument, NULL, 'T' },
		{ 0 },
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+:N:", options, NULL)) != -1)
		take_option(u, argv, option, optarg);
	if (optind < argc)
		die_usage("up: unexpected argument %s", argv[optind]);
	if (u->orphan && !u->journal)
		die_usage("--orphan needs a journal, with which another head can continue: give --journal DIR, too");
	if (u->take_over && !u->journal)
		die_usage("--take-over needs the journal of another head: give --resume DIR, too");
}

/* All nodes of the allocation, unless told otherwise. */
static void find_nodes(struct up *u)
{
	const char *job = getenv("SLURM_JOB_ID");
	const char *nodes = getenv("SLURM_JOB_NUM_NODES");

	if (u->local)
		return;
	if (!job)
		die("not in a Slurm allocation: run this inside salloc or sbatch, or give --local");
	if (!u->nodes && (!nodes || !decimal_u32(nodes, 1, LEDGER_NODES_MAX,
						 &u->nodes)))
		die("SLURM_JOB_NUM_NODES does not say how many nodes the job has: give -N");
}

/* ---- several ---- */

/* How many there are to be; 0: one that has the name itself. */
static void count_dvms(struct up *u)
{
	if (u->dvms && u->dvm_nodes)
		die_usage("--dvms is the number of DVMs, --dvm-nodes the nodes of each: give one of the two");
	if (u->dvm_nodes)
		u->dvms = (u->nodes + u->dvm_nodes - 1) / u->dvm_nodes;
	if (u->dvms > u->nodes)
		die("%u DVMs need at least %u nodes, and there are %u", u->dvms,
		    u->dvms, u->nodes);
	if (u->dvms > DVM_MEMBERS_MAX)
		die("%u DVMs are too many: at most %d can be started", u->dvms, DVM_MEMBERS_MAX);
}

/* Nodes before those of the DVM of this index. */
static uint32_t nodes_before(const struct up *u, uint32_t index)
{
	uint64_t n = u->dvm_nodes ? (uint64_t)index * u->dvm_nodes :
				    (uint64_t)index * u->nodes / u->dvms;

	return n < u->nodes ? (uint32_t)n : u->nodes;
}

/* Each has a journal of its own, DIR/1 and so on; those of another number do not fit. */
static void check_journals(const struct up *u)
{
	char path[DVM_PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/journal", u->journal);
	if (!access(path, F_OK))
		die("%s is the journal of one DVM, not of %u", u->journal, u->dvms);
	snprintf(path, sizeof(path), "%s/%u", u->journal, u->dvms + 1);
	if (!access(path, F_OK))
		die("%s has journals of more than %u DVMs: give as many as there were",
		    u->journal, u->dvms);
	rc = journal_dir_make(u->journal);
	if (rc && rc != -EEXIST)
		die("cannot make %s: %s", u->journal, strerror(-rc));
}

/* ---- starting a head ---- */

/* A head on one machine has no clients on others. */
static void make_address(const struct up *u, struct start *s)
{
	char *slash;

	if (u->local || !dvm_address(s->address, s->name)) {
		*s->address = '\0';
		return;
	}
	slash = strrchr(s->address, '/');
	*slash = '\0';
	(void)mkdir(s->address, 0700); /* without it, the head says so */
	*slash = '/';
}

static int take_dir(const char *dir)
{
	int rc;

	do { /* the last one that ends takes what they are all in with it */
		dvm_make_base();
		rc = place_take(dir);
	} while (rc == -ENOENT);
	return rc;
}

/* False: another DVM has it, and batch joins that. */
static bool make_dir(const struct up *u, struct start *all, uint32_t i)
{
	struct start *s = &all[i];

	dvm_dir(s->dir, s->name);
	s->lock = take_dir(s->dir);
	while (s->lock < 0 && i)
		place_leave(all[--i].dir, false);
	if (s->lock == -EWOULDBLOCK && u->ends)
		return false;
	if (s->lock == -EWOULDBLOCK)
		die("another DVM uses %s: that DVM is starting, or has not ended yet", s->dir);
	if (s->lock < 0)
		die("cannot make %s: %s", s->dir, strerror(-s->lock));
	make_address(u, s);
	return true;
}

static void find_own(struct up *u)
{
	const char *given = getenv("PMI2X_DVM_LIBEXEC");
	char dir[DVM_PATH_MAX];

	if (given) {
		snprintf(u->own, sizeof(u->own), "%s", given);
		return;
	}
	if ((size_t)snprintf(u->own, sizeof(u->own), "%s/../libexec/pmi2x",
			     own_dir(dir, sizeof(dir)) ? dir : "") >= sizeof(u->own) ||
	    access(u->own, X_OK) < 0)
		snprintf(u->own, sizeof(u->own), "%s", PKGLIBEXECDIR);
}

static void add_number(struct up *u, const char *option, uint32_t number)
{
	char *text;

	if (asprintf(&text, "%u", number) < 0)
		die("out of memory");
	add(u, option, text);
}

/* The whole path of its directory: clients elsewhere are told of it. */
static void add_journal(struct up *u, const struct start *s)
{
	char *here = realpath(".", NULL), *dir;

	if (!u->journal)
		return;
	if (*u->journal != '/' && !here)
		die("the working directory cannot be found: %s", strerror(errno));
	if (asprintf(&dir, s->member ? "%s%s%s/%u" : "%s%s%s", *u->journal == '/' ? "" : here,
		     *u->journal == '/' ? "" : "/", u->journal, s->member) < 0)
		die("out of memory");
	free(here);
	add(u, "-J", dir);
}

static void add_place(struct up *u, const struct start *s)
{
	add(u, "-n", s->name);
	add(u, "-d", s->dir);
	add_number(u, "-N", s->nodes);
	if (u->local)
		add(u, "-l", NULL);
	if (*s->address)
		add(u, "-A", s->address);
	if (!s->member)
		return;
	add_number(u, "-r", s->first);
	add_number(u, "-k", s->member);
	add_number(u, "-K", u->dvms);
}

static void become_head(struct up *u, const struct start *s, int hold)
{
	char program[DVM_PATH_MAX + 32], log[DVM_PATH_MAX + 8];
	int fd, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(program, sizeof(program), "%s/pmi2x-dvm-head", u->own);
	snprintf(log, sizeof(log), "%s/" HEADD_LOG, s->dir);
	u->args[0] = program;
	add_place(u, s);
	add_journal(u, s);
	add_number(u, "-H", (uint32_t)hold);
	add_number(u, "-D", (uint32_t)s->lock);
	fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 || null < 0 || dup2(null, 0) < 0 || dup2(fd, 1) < 0 ||
	    dup2(fd, 2) < 0) {
		dprintf(hold, "failed cannot write %s: %s\n", log, strerror(errno));
		_exit(126);
	}
	setsid();
	u->args[u->nargs] = NULL;
	execv(program, u->args);
	dprintf(hold, "failed cannot execute %s: %s\n", program, strerror(errno));
	place_leave(s->dir, false);
	_exit(126);
}

static void start_head(struct up *u, struct start *s)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("cannot create a pipe: %s", strerror(errno));
	s->head = fork();
	if (s->head < 0)
		die("cannot create a process: %s", strerror(errno));
	if (!s->head) {
		inherited_fds_forbid(STDERR_FILENO + 1);
		fcntl(ends[1], F_SETFD, 0);
		fcntl(s->lock, F_SETFD, 0);
		become_head(u, s, ends[1]);
	}
	close(ends[1]);
	close(s->lock);
	s->hold = ends[0];
}

/* ---- all of them ---- */

static int hold = -1; /* of a DVM that ends with its last client, until there is one */

/* When one cannot be, none is. */
static void __attribute__((noreturn, format(printf, 3, 4)))
give_up(const struct up *u, const struct start *all, const char *fmt, ...)
{
	char why[2 * DVM_PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	for (uint32_t i = 0; i < starts(u); i++)
		if (all[i].head > 0 && (u->dvms || interrupt_number()))
			kill(all[i].head, SIGTERM);
	for (uint32_t i = 0; i < starts(u); i++)
		if (all[i].head > 0)
			waitpid(all[i].head, NULL, 0);
	fprintf(stderr, isatty(STDERR_FILENO) ? "\n" : "");
	for (uint32_t i = 0; i < starts(u); i++)
		dvm_say_log(all[i].dir);
	if (!interrupt_number())
		die("%s", why);
	fprintf(stderr, "pmi2x-dvm: %s\n", why);
	interrupt_die();
}

/* A line of its words. False: it has ended, or a signal has come. */
static bool next_word(const struct start *s, char *line, size_t size)
{
	struct pollfd fds[2] = {
		{ .fd = s->hold, .events = POLLIN },
		{ .fd = interrupt_fd(), .events = POLLIN },
	};
	size_t n = 0;

	while (n < size - 1 && (!n || line[n - 1] != '\n')) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return false;
		if (interrupt_number())
			return false;
		if (fds[0].revents && read(s->hold, line + n, 1) != 1)
			return false;
		n += fds[0].revents != 0;
	}
	line[n - 1] = '\0';
	return true;
}

/* Its words, until it is ready or has failed. */
static void wait_ready(const struct up *u, const struct start *all, const struct start *s)
{
	bool tty = isatty(STDERR_FILENO);
	char line[2048];

	while (next_word(s, line, sizeof(line))) {
		if (!strncmp(line, "up ", 3) && tty)
			fprintf(stderr, "\r%u of %u nodes are up",
				s->first + (uint32_t)atoi(line + 3), u->nodes);
		if (!strcmp(line, "ready")) {
			if (!u->ends)
				close(s->hold);
			return;
		}
		if (!strncmp(line, "note ", 5))
			fprintf(stderr, "%spmi2x-dvm: %s\n", tty ? "\n" : "", line + 5);
		if (!strncmp(line, "failed ", 7))
			give_up(u, all, "%s", line + 7);
	}
	if (interrupt_number())
		give_up(u, all, "the DVM %s is not up: up was interrupted", s->name);
	give_up(u, all, "the head of the DVM %s has ended", s->name);
}

static void name_start(const struct up *u, struct start *s, uint32_t index)
{
	s->member = u->dvms ? index + 1 : 0;
	s->first = u->dvms ? nodes_before(u, index) : 0;
	s->nodes = u->dvms ? nodes_before(u, index + 1) - s->first : u->nodes;
	if ((size_t)snprintf(s->name, sizeof(s->name), s->member ? "%s.%u" : "%s", u->name,
			     s->member) >= sizeof(s->name))
		die_usage("the name is too long");
}

/* All at once; each has its part of the nodes. False: as of make_dir. */
static bool start_all(struct up *u)
{
	uint32_t count = starts(u);
	struct start *all = calloc(count, sizeof(*all));
	bool tty = isatty(STDERR_FILENO);

	if (!all)
		die("out of memory");
	for (uint32_t i = 0; i < count; i++) {
		name_start(u, &all[i], i);
		if (!make_dir(u, all, i)) {
			free(all);
			return false;
		}
	}
	interrupt_catch();
	for (uint32_t i = 0; i < count; i++)
		start_head(u, &all[i]);
	for (uint32_t i = 0; i < count; i++)
		wait_ready(u, all, &all[i]);
	fprintf(stderr, tty ? "\n" : "");
	hold = u->ends ? all[0].hold : -1;
	free(all);
	return true;
}

static void default_name(struct up *u)
{
	static char name[DVM_PATH_MAX];

	if (u->name)
		return;
	dvm_default_name(name);
	json_decref(user_text("the name of the DVM", name));
	u->name = name;
}

static bool start(struct up *u)
{
	find_nodes(u);
	count_dvms(u);
	default_name(u);
	if (dvm_is_up(u->name) && u->ends)
		return false;
	if (dvm_is_up(u->name))
		die("the DVM %s is up already: stop that DVM with pmi2x-dvm down, or give --name another name",
		    u->name);
	if (u->journal && u->dvms)
		check_journals(u);
	find_own(u);
	if (!start_all(u))
		return false;
	printf("DVM %s is up: %u node%s", u->name, u->nodes, u->nodes == 1 ? "" : "s");
	printf(u->dvms ? ", %u DVMs\n" : "\n", u->dvms);
	fflush(stdout); /* before what batch says of its tasks, to standard error */
	if (u->local && u->nodes > 1)
		fprintf(stderr, "pmi2x-dvm: these %u nodes are this machine: each has all its cores, which run the tasks of all\n",
			u->nodes);
	return true;
}

/* As in the tree of `make dvm`: that program loads libpmix, and cannot be static. */
static void warn_no_pmix(const struct up *u)
{
	char path[DVM_PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/pmi2x-pmixd", u->own);
	if (access(path, X_OK) < 0)
		fprintf(stderr, "pmi2x-dvm: there is no %s: tasks of Open MPI and other PMIx programs run as singletons; MPICH and other PMI programs work\n",
			path);
}

int cmd_up(int argc, char **argv)
{
	static struct up u = { .nargs = 1 };

	take_options(&u, argc, argv);
	(void)start(&u);
	warn_no_pmix(&u);
	return 0;
}

bool up_for_batch(int argc, char **argv, bool paused)
{
	struct up u = { .nargs = 1, .ends = true };
	int file = optind;
	bool started;

	optind = 1;
	take_options(&u, argc, argv);
	optind = file;
	add(&u, "-E", NULL);
	if (paused)
		add(&u, "-P", NULL);
	started = start(&u);
	interrupt_catch();
	return started;
}

void up_joined(void)
{
	if (hold >= 0)
		close(hold);
	hold = -1;
}
