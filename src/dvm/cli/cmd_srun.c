/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * srun, for engines: this program by another name, in a directory of its own that comes first
 * in PATH. If a DVM is up, a step with the options that engines give is its task. For
 * anything else, the next srun in PATH takes the place of this process.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/srun_options.h"
#include "dvm/cli/up.h"

/* True: the file is this program itself. */
static bool is_own(const char *path)
{
	struct stat own, other;

	return !stat("/proc/self/exe", &own) && !stat(path, &other) &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static char **srun_argv; /* as this program got it */

/* Become the next srun of PATH. */
static void __attribute__((noreturn)) next_srun(void)
{
	const char *dirs = getenv("PATH");
	char path[DVM_PATH_MAX];

	for (size_t len; dirs && *dirs; dirs += len + !!dirs[len]) {
		len = strcspn(dirs, ":");
		if (!len || snprintf(path, sizeof(path), "%.*s/srun", (int)len, dirs) >=
				    (int)sizeof(path) ||
		    access(path, X_OK) < 0 || is_own(path))
			continue;
		execv(path, srun_argv);
		die("cannot execute %s: %s", path, strerror(errno));
	}
	die("srun: this step is none for a DVM, and PATH has no other srun");
}

/* A task has no standard input here, and an empty file is as good as none. */
static bool has_input_file(void)
{
	struct stat st;

	return !fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode) && st.st_size;
}

/* As of `sbatch --export=NONE`: not all variables are for the step. */
static bool has_all_variables(void)
{
	const char *given = getenv("SLURM_EXPORT_ENV");

	return !given || !*given || !strcmp(given, "ALL");
}

/* The DVM for a step, to be freed; NULL: none is up. */
static char *find_dvm(void)
{
	const char *given = getenv(DVM_NAME_VARIABLE);

	if (given && *given)
		return dvm_is_up(given) ? strdup(given) : NULL;
	return dvm_joinable(false);
}

int cmd_srun(int argc, char **argv)
{
	int count;
	char **run = srun_options_read(argc, argv, &count);
	char *dvm;

	srun_argv = argv;
	if (!run || has_input_file() || !has_all_variables())
		next_srun();
	dvm = find_dvm();
	if (!dvm)
		next_srun();
	/* srun ends by these even where a shell ignores them for it */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	optind = 1;
	return run_task(count, run, dvm, next_srun);
}

int cmd_engines(int argc, char **argv)
{
	char own[DVM_PATH_MAX];

	if (argc > 1)
		die_usage("engines: unexpected argument %s", argv[1]);
	up_find_own(own);
	printf("%s/pmi2x-dvm-engines\n", own);
	return 0;
}
