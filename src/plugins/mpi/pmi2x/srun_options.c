/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * srun's options are not among what it gives to a plugin. It exports them, as it
 * does the table of the MPIR interface (mpir_table.c): `opt`, and for het steps
 * `opt_list`. They are asked by the option's name, so that their layout does not matter.
 */
#include "slurm_compat.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "srun_options.h"
#include "supervisor/mpi_program.h"

#define ARGUMENTS_MAX 16 /* of a program that are looked at */

/* A question to the options of one component. */
typedef int option_test(void *opt, void *arg);

/* The options of the first component for which the test holds, or NULL. */
static slurm_opt_t *find_component(option_test *test)
{
	slurm_opt_t *opt = dlsym(RTLD_DEFAULT, "opt");
	slurm_list *components = dlsym(RTLD_DEFAULT, "opt_list");

	if (!opt || !components || !dlsym(RTLD_DEFAULT, "sropt"))
		return NULL; /* not srun */
	if (*components)
		return list_find_first(*components, test, NULL);
	return test(opt, NULL) ? opt : NULL;
}

static enum launch_kill bad_exit_in(slurm_opt_t *opt)
{
	char *text = slurm_option_get(opt, "kill-on-bad-exit");
	enum launch_kill kill = LAUNCH_KILL_UNSAID;

	/* Unsaid is a negative number there. */
	if (text && atoi(text) >= 0)
		kill = atoi(text) ? LAUNCH_KILL_YES : LAUNCH_KILL_NO;
	xfree(text);
	return kill;
}

static int says_bad_exit(void *opt, void *arg)
{
	return bad_exit_in(opt) != LAUNCH_KILL_UNSAID;
}

enum launch_kill srun_kill_on_bad_exit(void)
{
	slurm_opt_t *opt = find_component(says_bad_exit);

	return opt ? bad_exit_in(opt) : LAUNCH_KILL_UNSAID;
}

static int says_no_kill(void *opt, void *arg)
{
	char *text = slurm_option_get(opt, "no-kill");
	int is_set = text && !strcmp(text, "set");

	xfree(text);
	return is_set;
}

bool srun_no_kill(void)
{
	return find_component(says_no_kill);
}

/* srun has looked the program up in PATH, and put what it has found in its place. */
static int needs_mpi(void *opt, void *arg)
{
	static const enum launch_program kinds[] = {
		[MPI_PROGRAM_OTHER] = LAUNCH_PROGRAM_OTHER,
		[MPI_PROGRAM_PMI] = LAUNCH_PROGRAM_MPI,
		[MPI_PROGRAM_PMIX] = LAUNCH_PROGRAM_PMIX,
	};
	char **argv = compat_argv((slurm_opt_t *)opt);

	return argv && argv[0] ? (int)kinds[mpi_program(argv[0])] :
				 LAUNCH_PROGRAM_OTHER;
}

static int ignores_preload(void *opt, void *arg)
{
	char **argv = compat_argv((slurm_opt_t *)opt);

	return argv && argv[0] && preload_of(argv[0]) != PRELOAD_LOADS;
}

const char *srun_program_without_preload(enum preload *why)
{
	slurm_opt_t *opt = find_component(ignores_preload);
	char **argv = opt ? compat_argv(opt) : NULL;

	if (!argv)
		return NULL;
	*why = preload_of(argv[0]);
	return argv[0];
}

/* Whether the program is likely to start one of its arguments, as sudo and Python do. */
static int names_mpi(void *opt, void *arg)
{
	char **argv = compat_argv((slurm_opt_t *)opt);
	size_t i = argv && argv[0] ? 1 : 0;

	while (i && i <= ARGUMENTS_MAX && argv[i])
		if (mpi_program(argv[i++]) == MPI_PROGRAM_PMI)
			return true;
	return false;
}

enum launch_program srun_program(void)
{
	slurm_opt_t *opt = find_component(needs_mpi);

	if (opt)
		return (enum launch_program)needs_mpi(opt, NULL);
	return find_component(names_mpi) ? LAUNCH_PROGRAM_WRAPPER : LAUNCH_PROGRAM_OTHER;
}
