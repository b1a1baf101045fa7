/* SPDX-License-Identifier: BSD-3-Clause */
/* The help of pmi2x-dvm: help.h. */
#include "dvm/cli/help.h"

#include <errno.h>
#include <string.h>

#include "dvm/cli/die.h"

static const char usage[] =
"usage: pmi2x-dvm COMMAND [OPTION...]\n"
"Run many tasks in one Slurm allocation, or on one machine, without an srun for each.\n"
"\n"
"  up [-N NODES | --local [N]]   start daemons on the nodes of the allocation\n"
"  run [TASK OPTIONS] PROGRAM    run a task, with its output and exit status\n"
"  submit [TASK OPTIONS] [--wait] PROGRAM [ARGUMENT...] [::: VALUE...]\n"
"                                queue tasks; {} stands for each value, {#} for its number\n"
"  submit --json FILE            queue the tasks in a file of JSON lines (-: stdin)\n"
"  batch FILE                    run each line of FILE as a shell command, and wait; again:\n"
"                                continue with lines that have not ended\n"
"  wait [--any] [TASK...]        wait until these or all tasks have ended, or any of them\n"
"  ps [--ended]                  tasks that run or wait\n"
"  show TASK                     all of one task\n"
"  output TASK                   what it has printed\n"
"  output [--failed] FILE [LINE...]\n"
"                                what the lines of a batch have printed, all or these\n"
"  status                        the nodes\n"
"  why TASK                      show why a task waits, or what its ranks do\n"
"  report DIR [--csv | --json]   summarise the tasks of a journal\n"
"  report --tables DIR...        a line for each run\n"
"  cancel TASK... | --name NAME | --all\n"
"                                end tasks; TASK may be a range, as in 5-20\n"
"  signal SIGNAL TASK... | --name NAME | --all\n"
"                                send a signal to tasks\n"
"  drain NODE                    start nothing more on a node\n"
"  undrain NODE                  start tasks there again\n"
"  grow -N NUMBER | --jobid JOB | NODE...\n"
"                                start daemons on more nodes, also of another job\n"
"  shrink NODE... | -N NUMBER    remove nodes when their tasks have ended\n"
"  engines                       print the directory of an srun and a prun for workflow engines\n"
"  down [--wait | --cancel | --keep]\n"
"                                stop the DVM\n"
"\n"
"Options of a task:\n"
"  -n, --ranks NUMBER       processes (1)\n"
"  -c, --cores NUMBER       cores of each rank (1)\n"
"  -g, --gpus NUMBER        GPUs of each rank\n"
"  -N, --nodes NUMBER       exact number of nodes\n"
"  -w, --nodelist NODES     only on these nodes, as n1,n[3-5]\n"
"  --per-node NUMBER        maximum ranks on a node\n"
"  --exclusive              run no other task on its nodes\n"
"  --pmi                    provide PMI also to a task of one rank\n"
"  --mem BYTES[KMGT]        memory of each rank; counted, not enforced\n"
"  --counter NAME=NUMBER    amount of a counter of up --counter\n"
"  -t, --time TIME          time limit: 90s, 10m, 1h30m, 2d, minutes, M:S, H:M:S, D-H:M:S\n"
"  --retries NUMBER         run a failed task again, up to NUMBER times\n"
"  --priority NUMBER        tasks with a higher priority start first (0); may be negative\n"
"  -D, --chdir DIR          working directory; {} stands for each value\n"
"  -J, --name NAME          label in ps and report\n"
"  -o, --output FILE        file for standard output; %t: task, %r: rank\n"
"  -e, --error FILE         the same for standard error\n"
"  --append                 append to these files, also those of other tasks\n"
"  --no-output              discard the output\n"
"  --stdin                  run: give standard input to rank 0\n"
"  --preloaded              PROGRAM is a script of Python, for a fork of up --preload\n"
"  --dvm NAME               DVM to use if several are up\n"
"Options of submit and batch:\n"
"  --wait                   wait for the tasks, and print a summary\n"
"  --array LIST             one task for each number, in place of {}: 1-9, 0-10:2, 1,3,7-9\n"
"  --each-line FILE         one task for each line, in place of {}\n"
"  --json FILE              one task for each line, a JSON object\n"
"  --report FILE            write results as JSON lines\n"
"  --print                  print the output of each task when it ends\n"
"  --max-fails N|N%[,now]   start no more when more than N (%) failed; now: end the others\n"
"  --quiet                  print no summary and no progress\n"
"  --again                  batch: run all lines, whatever earlier runs did\n"
"  --shell PROGRAM          batch: the shell of the lines (/bin/sh)\n"
"  --retry-failed           batch: run the lines again that have failed\n"
"Options of up, and of others:\n"
"  --local [NODES]          up, batch: nodes on this machine (1), without Slurm\n"
"  --dvms NUMBER            up: number of DVMs that share the nodes\n"
"  --dvm-nodes NUMBER       up: as many DVMs as possible, with NUMBER nodes each\n"
"  --nodelist NODES         up: on these nodes of the allocation\n"
"  --share                  up: also on nodes of another DVM of the job\n"
"  --slots core|thread|N    slots of a node\n"
"  --preload CODE           up: run CODE in an interpreter of Python on each node, as in\n"
"                           'import numpy': submit --preloaded starts tasks from it\n"
"  --order fifo|large|work  start the oldest task first, or the largest\n"
"  --patience SECONDS       backfill window for a task that does not fit (60)\n"
"  --within SECONDS         up, grow: limit for all nodes to start, after the first (120)\n"
"  --grace SECONDS          time from SIGTERM to SIGKILL (10); shrink: time for running tasks\n"
"  --width NUMBER           links of the head, and of each node to nodes that it relays for\n"
"  --max-queued NUMBER      limit of queued tasks\n"
"  --journal DIR            up, batch: record the tasks in DIR\n"
"  --resume DIR             continue with the journal in DIR\n"
"  --once                   with a journal: start no task twice\n"
"  --take-over              up, batch: use the journal even if another head may write it\n"
"  --orphan SECONDS         up, batch: with a journal: time that tasks survive their head\n"
"  --fast                   do not wait for the disk before answers and reports\n"
"  --launcher COMMAND       start the daemons with COMMAND in place of srun\n"
"  --jobid JOB              grow: on nodes of this job\n"
"  --cancel                 down: end the tasks\n"
"  --keep                   down: keep the tasks in the journal\n"
"  --all                    cancel, signal: all tasks\n"
"  --ended                  ps: also tasks that have ended\n"
"  --failed                 output FILE: only tasks that have failed\n"
"  --json                   ps, status, why, report: print JSON\n"
"  --csv                    report: one line per task\n"
"  --tables                 report: one line per run\n"
"  --help                   print this text\n"
"  --version                print the version\n"
"pmi2x-dvm(1) explains all commands and options.\n";

bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

void help_print_all(FILE *to)
{
	fputs(usage, to);
}

/* A line of commands; its first two blanks are not those of a sentence. */
static void print_line(const char *at, const char *end)
{
	if (at[2] == ' ')
		printf("%.*s\n", (int)(end - at), at);
	else
		printf("usage: pmi2x-dvm %.*s\n", (int)(end - at - 2), at + 2);
}

int help_print(const char *name)
{
	const char *options = strstr(usage, "\nOptions of a task:"), *at, *end;
	size_t len = strlen(name);
	bool found = false;

	for (at = usage; at < options; at = end + 1) {
		end = strchr(at, '\n');
		if (strncmp(at, "   ", 3))
			found = !strncmp(at, "  ", 2) && !strncmp(at + 2, name, len) &&
				at[2 + len] == ' ';
		if (found)
			print_line(at, end);
	}
	fputs(options, stdout);
	if (fflush(stdout) || ferror(stdout))
		die("standard output cannot be written: %s", strerror(errno));
	return 0;
}
