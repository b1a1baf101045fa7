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
#include "pmi2x-build.h"

static const char usage[] =
"usage: pmi2x-dvm COMMAND [OPTION...]\n"
"Start many tasks inside one Slurm allocation, or on one machine, without an srun each.\n"
"\n"
"  up [-N NODES | --local N]     start daemons on the nodes of the allocation\n"
"  run [TASK OPTIONS] PROGRAM    run a task, with its output and exit status\n"
"  submit [TASK OPTIONS] [--wait] PROGRAM [ARGUMENT...] [::: VALUE...]\n"
"                                queue tasks; {} stands for each value\n"
"  submit --json FILE            queue the tasks of a file of JSON lines (-: stdin)\n"
"  batch FILE                    up, one task for each line of FILE, wait, down\n"
"  wait [TASK...]                wait until tasks have ended (all)\n"
"  ps | show TASK | status       tasks; all of one; the nodes\n"
"  why TASK                      what it waits for, or where its ranks are\n"
"  report DIR [--csv | --json]   what became of the tasks of a journal, and when\n"
"  cancel TASK... | --all        end tasks\n"
"  signal NUMBER TASK... | --all send a signal to tasks\n"
"  drain NODE | undrain NODE     start nothing more on a node; again\n"
"  grow -N NUMBER | --jobid JOB | NODE...\n"
"                                start daemons on more nodes, also of another job\n"
"  shrink NODE... | -N NUMBER    nodes leave when nothing runs there any more\n"
"  down [--wait | --cancel | --keep]\n"
"                                end the daemons\n"
"\n"
"Options of a task:\n"
"  -n, --ranks NUMBER       processes (1)\n"
"  -c, --cores NUMBER       cores of each rank (1)\n"
"  -g, --gpus NUMBER        GPUs of each rank\n"
"  -N, --nodes NUMBER       on exactly so many nodes\n"
"  --per-node NUMBER        ranks on a node at most\n"
"  --exclusive              nothing else on its nodes\n"
"  --pmi                    also one rank has PMI: it can spawn, and find others\n"
"  --mem BYTES[KMGT]        of each rank, counted and not enforced\n"
"  --counter NAME=NUMBER    so much of a counter of up --counter\n"
"  -t, --time TIME          minutes, M:S or H:M:S; then it is ended\n"
"  --retries NUMBER         run it again when it fails\n"
"  --priority NUMBER        higher ones come first (0)\n"
"  -J, --name NAME          for people\n"
"  -o, --output FILE        standard output goes there; %t: task, %r: rank\n"
"  --no-output              drop the output\n"
"  --dvm NAME               which DVM, when several are up\n"
"Options of submit:\n"
"  --wait                   wait for the tasks, and print a summary\n"
"  --array FIRST-LAST       a task for each number, in place of {}\n"
"  --each-line FILE         a task for each line, in place of {}\n"
"  --json FILE              a task for each line, an object of JSON\n"
"  --report FILE            results as lines of JSON\n"
"  --quiet                  no summary\n"
"Options of up, and of others:\n"
"  --local NODES            up, batch: nodes of this machine, without Slurm\n"
"  --dvms NUMBER            up: so many DVMs side by side, each with its part of the nodes\n"
"  --dvm-nodes NUMBER       up: the same, each of so many nodes\n"
"  --share                  up: where another DVM of the job is, too\n"
"  --slots core|thread|N    what tasks are given of a node\n"
"  --order fifo|large       which task comes first\n"
"  --patience SECONDS       how long others may pass one that does not fit (60)\n"
"  --within SECONDS         up, grow: all nodes must be up so soon after the first (120)\n"
"  --grace SECONDS          between SIGTERM and SIGKILL (10); shrink: what runs there has\n"
"  --max-queued NUMBER      tasks in the queue\n"
"  --journal DIR            up, batch: write down there what becomes of the tasks\n"
"  --resume DIR             go on with a journal\n"
"  --once                   with a journal: start no task twice\n"
"  --take-over              up, batch: a journal that another head writes, or may\n"
"  --orphan SECONDS         up, batch: with a journal: so long tasks outlive the head\n"
"  --fast                   wait for no disk before submits are answered and ends told\n"
"  --launcher COMMAND       in place of srun\n"
"  --jobid JOB              grow: on nodes of this job\n"
"  --cancel                 down: end the tasks\n"
"  --keep                   down: leave them in the journal\n"
"  --all                    cancel, signal: all tasks\n"
"  --ended                  ps: those that have ended, too\n"
"  --json                   ps, status, why, report: as JSON\n"
"  --csv                    report: a line a task\n"
"  --help                   show this text\n"
"  --version                show the version\n"
"pmi2x-dvm(1) explains them all.\n";

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "up", cmd_up },         { "down", cmd_down },   { "run", cmd_run },
	{ "submit", cmd_submit }, { "batch", cmd_batch }, { "wait", cmd_wait },
	{ "ps", cmd_ps },         { "show", cmd_show },   { "status", cmd_status },
	{ "why", cmd_why },       { "report", cmd_report },
	{ "cancel", cmd_cancel }, { "signal", cmd_signal },
	{ "drain", cmd_drain },   { "undrain", cmd_undrain },
	{ "grow", cmd_grow },     { "shrink", cmd_shrink },
};

/* The exit status of a command that has done its work so. */
static int with_output(int rc)
{
	if (!fflush(stdout) && !ferror(stdout))
		return rc;
	die("standard output cannot be written: %s", strerror(errno));
}

/*
 * So that no connection gets the number of one of them, and with it the output of tasks.
 * What is open for the wrong way fails, as what is closed does.
 */
static void open_what_is_closed(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	open_what_is_closed();
	signal(SIGPIPE, SIG_DFL);
	if (!name || !strcmp(name, "--help") || !strcmp(name, "-h")) {
		fputs(usage, name ? stdout : stderr);
		return name ? 0 : 2;
	}
	if (!strcmp(name, "--version")) {
		puts("pmi2x-dvm " PMI2X_BUILD);
		return 0;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(name, commands[i].name))
			return with_output(commands[i].run(argc - 1, argv + 1));
	die_usage("there is no command \"%s\"", name);
}
