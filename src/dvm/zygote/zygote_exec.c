/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From fork to exec of a rank. A vfork is cheaper than a fork, but this process stands
 * still until the program is executed: for as long as its file system takes, which may be
 * forever. So vfork is used only for a program that was executed here before, and without
 * delay.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/zygote/rank_files.h"
#include "dvm/zygote/rank_program.h"
#include "dvm/zygote/warm.h"
#include "dvm/zygote/zygote.h"
#include "libio/clock.h"
#include "libio/registration.h"
#include "libutil/hash.h"
#include "supervisor/mpi_program.h"

#define FAULTS 4096    /* places for errors between fork and exec */
#define QUICK 1024     /* places for programs that are executed at once */
#define QUICK_MS 20    /* limit of "at once" */

/* The action that failed. */
enum stage {
	STAGE_DIRECTORY,
	STAGE_OUTPUT,
	STAGE_AFFINITY,
	STAGE_PMI,
	STAGE_EXEC,
};

/* Written by a child that fails, in memory that it shares; also by pmi2x-dvm-warm. */
struct fault {
	pid_t process;
	enum stage stage;
	int error;
	bool bound; /* a limit of the rank bounds its memory */
	char what[256]; /* the path of the failed action */
};

static struct fault *faults;
static int faults_fd = -1;

/* Hashes of a program and how it is looked for; 0: none. */
static uint32_t quick[QUICK];    /* by hash: may be executed after a vfork */
static uint32_t on_trial[FAULTS]; /* by process: executed after a fork */

int zygote_exec_init(void)
{
	const size_t size = FAULTS * sizeof(*faults);

	faults_fd = memfd_create("faults", MFD_CLOEXEC);
	if (faults_fd < 0 || ftruncate(faults_fd, (off_t)size) < 0)
		return -errno;
	faults = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, faults_fd, 0);
	return faults == MAP_FAILED ? -errno : 0;
}

int zygote_exec_faults(size_t *count, size_t *size)
{
	*count = FAULTS;
	*size = sizeof(*faults);
	return faults_fd;
}

static void fail(enum stage stage, const char *what)
{
	struct fault *f = &faults[getpid() % FAULTS];

	f->process = getpid();
	f->stage = stage;
	f->error = errno;
	f->bound = f->error == ENOMEM && zygote_limits_bound_memory();
	snprintf(f->what, sizeof(f->what), "%s", what);
	_exit(f->error == ENOENT ? 127 : 126);
}

static void end_trial(pid_t process, bool good)
{
	uint32_t *program = &on_trial[process % FAULTS];

	if (*program && good)
		quick[*program % QUICK] = *program;
	*program = 0;
}

/* True: another try may succeed, see node_lack.c. */
static bool is_lack(const struct fault *f)
{
	return f->error == EMFILE || f->error == ENFILE || f->error == EAGAIN ||
	       (f->error == ENOMEM && !f->bound);
}

const char *zygote_exec_failure(pid_t process, int status, bool *lacks)
{
	static const char *const words[] = {
		[STAGE_DIRECTORY] = "cannot enter the directory",
		[STAGE_OUTPUT] = "cannot write",
		[STAGE_AFFINITY] = "cannot be bound to its cores",
		[STAGE_PMI] = "cannot be given its PMI",
		[STAGE_EXEC] = "cannot execute",
	};
	static char why[512];
	struct fault *f = &faults[process % FAULTS];
	const bool failed = f->process == process;

	/* A killed process may have waited for its program until then. */
	end_trial(process, !failed && WIFEXITED(status));
	*lacks = failed && is_lack(f);
	if (!failed)
		return NULL;
	f->process = 0;
	snprintf(why, sizeof(why), "%s %s: %s", words[f->stage], f->what,
		 strerror(f->error));
	return why;
}

/* ---- the child ---- */

static void bind_to_cores(const struct node_rank *r, const struct resources *has)
{
	cpu_set_t set;

	if (resources_cpus(has, &r->cores, &set) && sched_setaffinity(0, sizeof(set), &set) < 0)
		fail(STAGE_AFFINITY, "");
}

static void make_parents(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)mkdir(path, 0777); /* if the directory is missing, open fails */
		*at = '/';
	}
}

static int open_file(const struct node_rank *r, const char *name)
{
	const int flags = rank_file_flags(r, name);
	char path[PATH_MAX];
	int fd;

	errno = ENAMETOOLONG;
	if (!rank_file_path(path, sizeof(path), r, name))
		fail(STAGE_OUTPUT, name);
	fd = open(path, flags, 0666);
	if (fd < 0 && errno == ENOENT) {
		make_parents(path);
		fd = open(path, flags, 0666);
	}
	if (fd < 0)
		fail(STAGE_OUTPUT, path);
	return fd;
}

static bool has_paths(const struct dvm_launch *l)
{
	return l->output == DVM_OUTPUT_FILE || l->error.len || l->cwd.len;
}

static void set_stdio(const struct node_rank *r, const int output[2])
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), in = rank_file_input(r, null);
	int out = output[0], err = output[1];

	if (in < 0)
		fail(STAGE_OUTPUT, "standard input");
	if (r->launch->output == DVM_OUTPUT_FILE)
		out = open_file(r, r->launch->path.data);
	if (r->launch->output == DVM_OUTPUT_NONE)
		out = err = null;
	if (r->launch->error.len)
		err = open_file(r, r->launch->error.data);
	if (dup2(in, 0) < 0 || dup2(out < 0 ? null : out, 1) < 0 ||
	    dup2(err < 0 ? null : err, 2) < 0)
		fail(STAGE_OUTPUT, "standard output");
}

static void open_pmi(const struct node_rank *r, int registration, char *number)
{
	int fd, rc = registration_of_rank(registration, r->local, &fd);

	if (!rc) {
		sprintf(number, "%d", fd);
		return;
	}
	errno = -rc;
	fail(STAGE_PMI, "");
}

/* The path that execvp finds; "" if none. */
static void find_program(char out[PATH_MAX], const char *name)
{
	const char *path = getenv("PATH");

	snprintf(out, PATH_MAX, "%s", strchr(name, '/') ? name : "");
	while (path && *path && !strchr(name, '/')) {
		size_t len = strcspn(path, ":");

		snprintf(out, PATH_MAX, "%.*s/%s", (int)len, path, name);
		if (!access(out, X_OK))
			return;
		path += len + (path[len] == ':');
		*out = '\0';
	}
}

/* Warn of a program whose ranks would each be a singleton, without a message. */
static void warn_of_pmix(const struct node_rank *r, const struct resources *has,
			 const char *program)
{
	char path[PATH_MAX];

	if (!node_wants_pmi(r->launch) || has->pmix.port ||
	    r->launch->first_rank + r->local)
		return;
	find_program(path, program);
	if (mpi_program(path) == MPI_PROGRAM_PMIX)
		fprintf(stderr, "pmi2x-dvm: %s uses Open MPI and needs PMIx, which node %s cannot serve: each rank runs as a singleton; install pmi2x-pmixd of pmi2x, and libpmix 4.2 or later there (Debian: libpmix2)\n",
			program, has->node);
}

static void reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((noreturn))
static void become(const struct node_rank *r, const struct resources *has,
		   const struct rank_fds *fds, const struct program *p)
{
	const char *cwd = r->launch->cwd.len ? r->launch->cwd.data : r->profile->cwd.data;

	zygote_limits_begin(&r->profile->limits);
	if (p->pmi_fd)
		open_pmi(r, fds->registration, p->pmi_fd);
	/*
	 * Make a process group, not a session. If sessions are scheduled as groups, ranks
	 * of a busy node would wait for one another, and for pmi2x-dvmd.
	 */
	setpgid(0, 0);
	reset_signals();
	bind_to_cores(r, has);
	if (chdir(cwd) < 0)
		fail(STAGE_DIRECTORY, cwd);
	set_stdio(r, fds->output);
	warn_of_pmix(r, has, p->argv[0]);
	zygote_limits_set(&r->profile->limits);
	execvp(p->argv[0], p->argv);
	fail(STAGE_EXEC, p->argv[0]);
	_exit(126);
}

/* ---- vfork or fork ---- */

/* The hash of the program and of how it is looked for; not 0. */
static uint32_t hash_program(const struct node_rank *r, const char *program)
{
	const uint32_t hash = hash_seeded(r->profile->number, program, strlen(program));

	return hash ? hash : 1;
}

static pid_t start_at_once(const struct node_rank *r, const struct resources *has,
			   const struct rank_fds *fds, const struct program *p,
			   uint32_t *known)
{
	const uint64_t begin = clock_ms(CLOCK_MONOTONIC);
	pid_t pid = vfork();

	if (!pid)
		become(r, has, fds, p);
	if (clock_ms(CLOCK_MONOTONIC) - begin > QUICK_MS)
		*known = 0;
	return pid;
}

static pid_t start(const struct node_rank *r, const struct resources *has,
		   const struct rank_fds *fds, const struct program *p)
{
	const uint32_t program = hash_program(r, p->argv[0]);
	uint32_t *known = &quick[program % QUICK];
	pid_t pid;

	/* Also opening a file that a user has named may take forever. */
	if (*known == program && !has_paths(r->launch))
		return start_at_once(r, has, fds, p, known);
	pid = fork();
	if (!pid)
		become(r, has, fds, p);
	if (pid > 0)
		on_trial[pid % FAULTS] = program;
	return pid;
}

pid_t zygote_exec(const struct node_rank *rank, const struct resources *has,
		  const struct rank_fds *fds)
{
	char **own = environ;
	struct program p;
	pid_t pid;
	int rc = program_make(&p, rank, has, fds->registration >= 0);

	if (rc)
		return rc;
	environ = p.env; /* execvp uses its PATH */
	if (rank->launch->preloaded)
		pid = warm_start(has->warm, rank, has, &p, fds->output);
	else if ((pid = start(rank, has, fds, &p)) < 0)
		pid = -errno;
	environ = own;
	program_free(&p);
	return pid;
}
