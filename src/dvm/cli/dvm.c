/* SPDX-License-Identifier: BSD-3-Clause */
/* The program pmi2x-dvm: many tasks inside one allocation. */
#include "dvm/cli/dvm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/help.h"
#include "pmi2x-build.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "up", cmd_up },         { "down", cmd_down },   { "run", cmd_run },
	{ "submit", cmd_submit }, { "batch", cmd_batch }, { "wait", cmd_wait },
	{ "ps", cmd_ps },         { "show", cmd_show },   { "status", cmd_status },
	{ "output", cmd_output },
	{ "why", cmd_why },       { "report", cmd_report },
	{ "cancel", cmd_cancel }, { "signal", cmd_signal },
	{ "drain", cmd_drain },   { "undrain", cmd_undrain },
	{ "grow", cmd_grow },     { "shrink", cmd_shrink },
	{ "engines", cmd_engines },
};

/* Other names of this program, for engines. */
static const struct command engines[] = {
	{ "srun", cmd_srun },   { "prte", cmd_prte }, { "prun", cmd_prun },
	{ "pterm", cmd_pterm }, { "prte_info", cmd_prte_info },
};

/* The exit status of a command that has done its work so. */
static int with_output(int rc)
{
	if (!fflush(stdout) && !ferror(stdout))
		return rc;
	die("standard output cannot be written: %s", strerror(errno));
}

/*
 * Open descriptors 0 to 2 if they are closed, so that no connection gets such a number, and
 * with it the output of tasks. Each is opened the wrong way, so that its use fails as that
 * of a closed one.
 */
static void open_what_is_closed(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	die_usage("there is no command \"%s\"", name);
}

/* By the name that this program was called by; NULL: its own. */
static const struct command *find_engine(const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; i < sizeof(engines) / sizeof(*engines); i++)
		if (!strcmp(slash ? slash + 1 : path, engines[i].name))
			return &engines[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *command = find_engine(argv[0]);

	open_what_is_closed();
	signal(SIGPIPE, SIG_DFL);
	if (command)
		return with_output(command->run(argc, argv));
	if (!name || is_help(name) || (!strcmp(name, "help") && argc == 2)) {
		help_print_all(name ? stdout : stderr);
		return name ? 0 : 2;
	}
	if (!strcmp(name, "--version")) {
		puts("pmi2x-dvm " PMI2X_BUILD);
		return 0;
	}
	if (!strcmp(name, "help"))
		return help_print(find_command(argv[2])->name);
	command = find_command(name);
	if (argc > 2 && is_help(argv[2]))
		return help_print(name);
	return with_output(command->run(argc - 1, argv + 1));
}
