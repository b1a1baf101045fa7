/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prte and prte_info, for engines: a DVM as up starts it, which prte waits for. The DVM ends by
 * pterm, with its job, or by a signal to prte. It also ends when prte was killed and no prun
 * is left: then it has no client.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "dvm/cli/dvm.h"
#include "dvm/cli/interrupt.h"
#include "dvm/cli/options.h"
#include "dvm/cli/prrte.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"
#include "pmi2x-build.h"

struct prte {
	const char *report; /* file for the URI; - is standard output, + standard error */
	bool daemonize;     /* do not wait for the end of the DVM */
	bool quiet;         /* no "DVM ready" */
	struct prrte_hosts hosts;
};

/* ---- options ---- */

/* A line of a file of hosts: NAME [slots=NUMBER]. */
static void take_line(struct prte *p, const char *path, char *line)
{
	const char *name, *word;
	uint32_t slots = 0;

	line[strcspn(line, "#\n")] = '\0';
	name = strtok(line, " \t");
	while (name && (word = strtok(NULL, " \t")))
		if (strncmp(word, "slots=", 6) ? strncmp(word, "max", 3) :
						 !decimal_u32(word + 6, 1, DVM_CORES_MAX, &slots))
			die("prte: %s: host %s has \"%s\"; known is slots=NUMBER", path, name,
			    word);
	if (name)
		prrte_hosts_add(&p->hosts, name, slots);
}

static void take_file(struct prte *p, const char *path)
{
	FILE *in = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!in)
		die("prte: the hosts in %s cannot be read: %s", path, strerror(errno));
	while (getline(&line, &size, in) >= 0)
		take_line(p, path, line);
	free(line);
	fclose(in);
	if (!p->hosts.names)
		die("prte: %s names no host", path);
}

enum { REPORT = 1, HOSTFILE, HOST, DAEMONIZE, QUIET, TWO_WORDS, IGNORED };

static const struct option options[] = {
	{ "report-uri", required_argument, NULL, REPORT },
	{ "hostfile", required_argument, NULL, HOSTFILE },
	{ "machinefile", required_argument, NULL, HOSTFILE },
	{ "host", required_argument, NULL, HOST },
	{ "H", required_argument, NULL, HOST },
	{ "daemonize", no_argument, NULL, DAEMONIZE },
	{ "no-ready-msg", no_argument, NULL, QUIET },
	{ "mca", required_argument, NULL, TWO_WORDS },
	{ "pmixmca", required_argument, NULL, TWO_WORDS },
	{ "prtemca", required_argument, NULL, TWO_WORDS },
	{ "prefix", required_argument, NULL, IGNORED },
	{ "verbose", no_argument, NULL, IGNORED },
	{ 0 },
};

static void take_options(struct prte *p, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long_only(argc, argv, "+:", options, NULL)) != -1)
		switch (option) {
		case REPORT: p->report = optarg; break;
		case HOSTFILE: take_file(p, optarg); break;
		case HOST: prrte_hosts_take(&p->hosts, "prte", optarg); break;
		case DAEMONIZE: p->daemonize = true; break;
		case QUIET: p->quiet = true; break;
		case TWO_WORDS: optind += argv[optind] != NULL; break;
		case IGNORED: break;
		default: die_option(argv, option, options);
		}
	if (optind < argc)
		die_usage("prte: unexpected argument %s", argv[optind]);
}

/* ---- the DVM ---- */

/* stdbuf preloads a library into this program, which is not for the daemons. */
static void forget_stdbuf(void)
{
	char *list = getenv("LD_PRELOAD"), *copy = list ? strdup(list) : NULL;
	char *kept = calloc(1, list ? strlen(list) + 1 : 1), *word;

	for (word = copy ? strtok(copy, ": ") : NULL; kept && word; word = strtok(NULL, ": "))
		if (!strstr(word, "libstdbuf"))
			strcat(strcat(kept, *kept ? ":" : ""), word);
	if (kept && *kept)
		setenv("LD_PRELOAD", kept, 1);
	else
		unsetenv("LD_PRELOAD");
	unsetenv("_STDBUF_I");
	unsetenv("_STDBUF_O");
	unsetenv("_STDBUF_E");
	free(copy);
	free(kept);
}

/* Without a job there is only this machine. */
static char *nodes_option(const struct prte *p)
{
	const char *other = prrte_hosts_elsewhere(&p->hosts);

	if (getenv("SLURM_JOB_ID"))
		return p->hosts.names ? prrte_hosts_option(&p->hosts) : NULL;
	if (other)
		die("prte: there is no Slurm job, and host %s is another machine: run prte inside salloc or sbatch",
		    other);
	return strdup("--local");
}

/* Slots that are all hardware threads are these threads, and ranks are bound to them. */
static char *slots_option(const struct prte *p)
{
	char *option;
	cpu_set_t set;

	if (p->hosts.differ)
		die("prte: all hosts must have the same number of slots");
	if (!p->hosts.most ||
	    (!sched_getaffinity(0, sizeof(set), &set) && p->hosts.most == (uint32_t)CPU_COUNT(&set)))
		return strdup("--slots=thread");
	return asprintf(&option, "--slots=%u", p->hosts.most) < 0 ? NULL : option;
}

static char *name_option(void)
{
	char machine[256] = "", *option;

	gethostname(machine, sizeof(machine) - 1);
	machine[strcspn(machine, ".")] = '\0';
	return asprintf(&option, "--name=prte-%s-%d", machine, (int)getpid()) < 0 ? NULL : option;
}

static void report_uri(const struct prte *p, const char *name)
{
	bool out = p->report && !strcmp(p->report, "-"), err = p->report && !strcmp(p->report, "+");
	FILE *to = out ? stdout : err ? stderr : p->report ? fopen(p->report, "we") : NULL;

	if (!p->report)
		return;
	if (!to || fprintf(to, PRRTE_SCHEME "%s\n", name) < 0 || fflush(to))
		die("prte: the URI cannot be written to %s: %s", p->report, strerror(errno));
	if (!out && !err)
		fclose(to);
}

/* A signal ends the DVM; the loop ends with it. */
static void wait_for_end(struct conn *c)
{
	json_t *event;

	while ((event = conn_next(c))) {
		if (!strcmp(event_name(event), "interrupted"))
			json_decref(conn_try(c, json_pack("{s:s,s:s}", "op", "down", "work", "cancel")));
		json_decref(event);
	}
}

int cmd_prte(int argc, char **argv)
{
	struct prte p = { 0 };
	char *up[5] = { "up" }, *name = name_option();
	int count = 1;
	struct conn *c;

	argv[0] = "prte";
	take_options(&p, argc, argv);
	forget_stdbuf();
	up[count++] = name;
	up[count++] = slots_option(&p);
	up[count] = nodes_option(&p);
	count += up[count] != NULL;
	name += strlen("--name=");
	if (p.daemonize) {
		optind = 1;
		(void)cmd_up(count, up);
	} else if (!up_for_batch(count, up, false)) {
		die("prte: the DVM %s is up already", name);
	}
	c = conn_open(name);
	json_decref(conn_ask(c, json_pack("{s:s}", "op", "status"))); /* it knows this client */
	up_joined();
	report_uri(&p, name);
	if (!p.quiet)
		puts("DVM ready");
	fflush(stdout);
	if (!p.daemonize)
		wait_for_end(c);
	conn_close(c);
	return 0;
}

int cmd_prte_info(int argc, char **argv)
{
	puts("                PRTE: pmi2x-dvm " PMI2X_BUILD);
	return 0;
}
