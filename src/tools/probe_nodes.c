/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-probe --nodes: which nodes lack the plugin or the agent, have another build, or
 * a plugin for another Slurm.
 *
 * Runs one step without MPI over the nodes, whose tasks print what mpi_pmi2x.so and
 * pmi2x-agent say of themselves (libio/protocol.h). Nothing of pmi2x need be installed
 * there for that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/probe.h"
#include "tools/probe_node_list.h"
#include "tools/probe_process.h"

#define WAIT_S "60" /* for the nodes to become free */
#define STEP_S 120  /* for this, and the step itself */

static const char *const files[PARTS] = { "mpi_pmi2x.so", "pmi2x-agent",
					    "libpmix.so.2" };

/* ---- the files ---- */

/* Notes the version of Slurm that the plugin was built for: 0x160508 for 22.05.8. */
static void note_plugin_for(struct node *node, const char *number)
{
	unsigned long v = strtoul(number, NULL, 16);

	snprintf(node->plugin_for, sizeof(node->plugin_for), "%lu.%02lu.%lu",
		 v >> 16 & 255, v >> 8 & 255, v & 255);
}

/* A line "NODE FILE STATE" of SCRIPT. */
static void note_file(struct node *node, char *file)
{
	char *state = file ? node_list_cut(file) : NULL;

	if (state && !strcmp(file, "plugin-for"))
		note_plugin_for(node, state);
	for (int i = 0; state && i < PARTS; i++)
		if (!strcmp(file, files[i]))
			snprintf(node->state[i], STATE_LEN, "%s", state);
}

static void note_file_there(void *arg, char *line)
{
	char *rest = node_list_cut(line);
	struct node *node = node_list_find(arg, line);

	if (node)
		note_file(node, rest);
}

static void note_file_here(void *arg, char *line)
{
	note_file(arg, node_list_cut(line));
}

static void note_plugin_dir(void *arg, char *line)
{
	char *value = strchr(line, '=');

	if (strncmp(line, "PluginDir", 9) || !value)
		return;
	value += 1 + strspn(value + 1, " ");
	snprintf(arg, PROBE_LINE_MAX, "%s", value);
}

static bool read_plugin_dir(char *out)
{
	char *argv[] = { "scontrol", "show", "config", NULL };

	*out = '\0';
	if (!probe_process_read(argv, ASK_S, note_plugin_dir, out) && *out)
		return true;
	fputs("pmi2x-probe: \"scontrol show config\" does not show PluginDir; "
	      "are slurmctld and munge running?\n", stderr);
	return false;
}

/* Notes the version of Slurm on this host: "slurm 25.05.8", "slurm-wlm 22.05.8". */
static void note_version(void *arg, char *line)
{
	struct node *here = arg;
	char *version = node_list_cut(line);

	if (version && *version >= '0' && *version <= '9')
		snprintf(here->slurm, sizeof(here->slurm), "%s", version);
}

/*
 * $0: the directories of PluginDir; $1: the agent's file; $2: the name to print. The
 * number behind libpmix.so. is not the release, but the file's package says which.
 */
static const char SCRIPT[] =
	"mark() { LC_ALL=C tr -c '[:print:]' '\\n' <\"$1\" | "
	"sed -n \"s/^pmi2x $2 \\($3\\)\\$/\\1/p\"; }; "
	"say() { if [ -r \"$2\" ]; then b=$(mark \"$2\" build '[^ ]* protocol [0-9]*'); "
	"echo \"$name $1 ${b:-unknown build}\"; else echo \"$name $1 missing\"; fi; }; "
	"name=${2:-$SLURMD_NODENAME}; agent=$1; p=; IFS=:; "
	"for d in $0; do [ -r \"$d/mpi_pmi2x.so\" ] && p=${p:-$d/mpi_pmi2x.so}; done; "
	"unset IFS; say mpi_pmi2x.so \"$p\"; "
	"v=$([ -r \"$p\" ] && mark \"$p\" slurm '0x[0-9a-f]*'); "
	"[ -z \"$v\" ] || echo \"$name plugin-for $v\"; say pmi2x-agent \"$agent\"; "
	"for d in /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /usr/local/lib64 /usr/local/lib; do "
	"l=${l:-$(readlink -e $d/libpmix.so.2)}; done; "
	"f='${Package} ${Version}\n'; p=$(dpkg-query -S \"$l\" 2>/dev/null | sed 's/:.*//;q'); "
	"p=$( { [ -n \"$p\" ] && dpkg-query -W -f \"$f\" \"$p\" || rpm -qf \"$l\"; } 2>/dev/null | sed q); "
	"if [ -n \"$l\" ]; then echo \"$name libpmix.so.2 ${p:-$l}\"; "
	"else echo \"$name libpmix.so.2 missing\"; fi";

static void look_here(char *dirs, struct node *here)
{
	char *argv[] = { "sh", "-c", (char *)SCRIPT, dirs, AGENT_PROGRAM,
			 "here", NULL };
	char *version[] = { "scontrol", "--version", NULL };

	node_set_states(here, "missing");
	probe_process_read(version, ASK_S, note_version, here);
	probe_process_read(argv, ASK_S, note_file_here, here);
}

/* "n1,n2,...": the nodes on which a step can run; malloc'ed, or NULL. */
static char *usable_list(const struct nodes *n, size_t *count)
{
	size_t len = 1, at = 0;
	char *list;

	*count = 0;
	for (size_t i = 0; i < n->count; i++)
		len += strlen(n->items[i].name) + 1;
	list = calloc(1, len);
	for (size_t i = 0; list && i < n->count; i++) {
		if (!n->items[i].usable)
			continue;
		at += sprintf(list + at, "%s%s", at ? "," : "",
			      n->items[i].name);
		(*count)++;
	}
	return list;
}

static bool look_there(struct nodes *n, char *dirs)
{
	size_t count;
	char *list = usable_list(n, &count);
	char nodes[24];
	char *argv[] = { "srun", "--mpi=none", "-w", list, "-N", nodes, "-n",
			 nodes, "--ntasks-per-node=1",
			 "--immediate=" WAIT_S, "sh", "-c",
			 (char *)SCRIPT, dirs, AGENT_PROGRAM, NULL };
	bool ok = list != NULL;

	snprintf(nodes, sizeof(nodes), "%zu", count);
	for (size_t i = 0; i < n->count; i++)
		if (n->items[i].usable)
			node_set_states(&n->items[i], "no answer");
	if (ok && count)
		ok = !probe_process_read(argv, STEP_S, note_file_there, n);
	if (!ok) /* the nodes waited for */
		node_list_find_stuck(n);
	free(list);
	return ok;
}

/* ---- the verdict ---- */

static bool is_build(const char *state)
{
	return *state >= '0' && *state <= '9';
}

/* The build of the first node that has one for this part, or NULL. */
static const char *first_build(const struct nodes *n, enum part part)
{
	for (size_t i = 0; i < n->count; i++)
		if (is_build(n->items[i].state[part]))
			return n->items[i].state[part];
	return NULL;
}

/*
 * The build that all should have: the plugin's build here, else that of the first node
 * with one. Where there is no plugin at all, agents are compared with the first one.
 */
static const char *reference(const struct nodes *n, const struct node *here)
{
	const char *build = first_build(n, PLUGIN);

	if (is_build(here->state[PLUGIN]))
		return here->state[PLUGIN];
	if (!build)
		build = first_build(n, AGENT);
	return build ? build : here->state[PLUGIN];
}

/* Nodes of another build work together if what follows it is the same. */
static bool same_protocol(const char *state, const char *want)
{
	const char *one = strchr(state, ' '), *other = strchr(want, ' ');

	return one && other && !strcmp(one, other);
}

/*
 * Slurm loads a plugin of its own version only, to the last number: "26.05.0-0rc1" says
 * 26.05.0 in its plugins. True where either is not known.
 */
static bool fits_slurm(const struct node *node)
{
	size_t len = strlen(node->plugin_for);

	if (!len || !*node->slurm)
		return true;
	return !strncmp(node->plugin_for, node->slurm, len) &&
	       !strchr("0123456789.", node->slurm[len] ? node->slurm[len] : '-');
}

/* `text` is where a verdict that names versions is written. */
static const char *verdict_on(const struct node *node, enum part part,
			      const char *want, char text[2 * STATE_LEN])
{
	const char *state = node->state[part];

	if (!is_build(state))
		return state;
	if (part == PLUGIN && !fits_slurm(node)) {
		snprintf(text, 2 * STATE_LEN, "for Slurm %s, not %s",
			 node->plugin_for, node->slurm);
		return text;
	}
	if (!strcmp(state, want))
		return "ok";
	return same_protocol(state, want) ? "another build" :
					    "another protocol";
}

/* Returns whether it is as it should be. */
static bool print_row(const struct node *node, enum part part, const char *want)
{
	const char *state = node->state[part];
	char text[2 * STATE_LEN];
	const char *verdict = verdict_on(node, part, want, text);

	printf("%-24s %-13s %-32s %s\n", node->name, files[part],
	       is_build(state) ? state : "-", verdict);
	return !strcmp(verdict, "ok");
}

/* Clients of PMIx need it, nobody else. */
static void print_libpmix(const struct node *node)
{
	const char *state = node->state[LIBPMIX];
	const char *verdict = "ok", *shown = state;

	if (!strcmp(state, "missing")) {
		shown = "-";
		verdict = "missing: Open MPI cannot run there (packages libpmix2, pmix)";
	} else if (!strcmp(state, "no answer")) {
		shown = "-";
		verdict = state;
	}
	printf("%-24s %-13s %-32s %s\n", node->name, files[LIBPMIX], shown,
	       verdict);
}

/* Says whether plugin and agent are as they should be. */
static bool print_node(const struct node *node, const char *want)
{
	bool plugin = print_row(node, PLUGIN, want);
	bool agent = print_row(node, AGENT, want);

	if (node->usable)
		print_libpmix(node);
	return plugin && agent;
}

static void print_stuck(const struct nodes *n)
{
	const char *comma = "";

	fputs("\nSlurm has waited for more than a minute for ", stdout);
	for (size_t i = 0; i < n->count; i++) {
		if (!n->items[i].stuck)
			continue;
		printf("%s%s", comma, n->items[i].name);
		comma = ",";
	}
	fputs(" to end a job. The usual\nreason: a step of pmi2x ran there before slurmd knew the plugin. Check that the\nplugin is installed there. From Slurm 23.11 on, "
	      "run \"scontrol reconfigure\" and\nwait two minutes. Before 23.11, run "
	      "\"systemctl restart slurmd\" there: systemd\nkills that slurmd after 90 "
	      "seconds, and running jobs go on. A long epilog, or a\nprocess that cannot be "
	      "killed, are other reasons.\n", stdout);
}

static void print_remedy(const char *dirs)
{
	printf("Install the same mpi_pmi2x.so, built for the Slurm of the host, in %s "
	       "on\nlogin, compute and controller hosts, and pmi2x-agent as %s\n"
	       "on compute hosts; then run \"scontrol reconfigure\" (slurmd finds "
	       "new\nplugins only then).\n",
	       dirs, AGENT_PROGRAM);
}

static int print_table(const struct nodes *n, const struct node *here,
		       const char *dirs)
{
	const char *want = reference(n, here);
	size_t wrong = 0, stuck = 0;

	printf("%-24s %-13s %-32s %s\n", "NODE", "FILE", "BUILD", "VERDICT");
	wrong += !print_row(here, PLUGIN, want);
	for (size_t i = 0; i < n->count; i++) {
		wrong += !print_node(&n->items[i], want);
		stuck += n->items[i].stuck;
	}
	if (!wrong) {
		printf("\nAll have the same build: mpi_pmi2x.so in %s, and\n%s.\n",
		       dirs, AGENT_PROGRAM);
		return PROBE_OK;
	}
	if (wrong > stuck) {
		printf("\n%zu of %zu differ. ", wrong - stuck, n->count + 1);
		print_remedy(dirs);
	}
	if (stuck)
		print_stuck(n);
	return PROBE_FAILED;
}

int probe_nodes(const char *list)
{
	struct nodes nodes = { NULL, 0 };
	struct node here = { .name = "(this host)" };
	char dirs[PROBE_LINE_MAX];
	int status = PROBE_FAILED;

	if (getenv("PMI_FD")) {
		fputs("pmi2x-probe: --nodes starts a step of its own: run it "
		      "outside of srun\n", stderr);
		return PROBE_USAGE;
	}
	if (read_plugin_dir(dirs) && node_list_read(&nodes, list)) {
		look_here(dirs, &here);
		if (!look_there(&nodes, dirs))
			fputs("pmi2x-probe: srun failed; the results that it reported are below\n", stderr);
		status = print_table(&nodes, &here, dirs);
	}
	node_list_free(&nodes);
	return status;
}
