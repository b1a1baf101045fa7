/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-probe --nodes: which nodes lack the plugin or the agent, or have another build;
 * and which libpmix they have, if any.
 *
 * Runs one step without MPI over the nodes, whose tasks print what mpi_pmi2x.so and
 * pmi2x-agent say of themselves (libio/protocol.h). Nothing of pmi2x need be installed
 * there for that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe.h"
#include "probe_process.h"

#define NODES_MAX 65536
#define LINE_LEN PROBE_LINE_MAX
#define STATE_LEN 64
#define WAIT_SECONDS "60" /* for the nodes to become free */

enum part { PLUGIN, AGENT, LIBPMIX, PARTS };

static const char *const files[PARTS] = { "mpi_pmi2x.so", "pmi2x-agent",
					    "libpmix.so.2" };

struct node {
	char *name;
	/* of each file: build and protocol (libpmix: release and package), "missing",
	   or why it is not known */
	char state[PARTS][STATE_LEN];
	bool usable; /* Slurm would run a step there */
};

struct nodes {
	struct node *items;
	size_t count;
};

/* ---- the nodes ---- */

static void set_states(struct node *node, const char *text)
{
	for (int i = 0; i < PARTS; i++)
		snprintf(node->state[i], STATE_LEN, "%s", text);
}

static void add_node(void *arg, char *line)
{
	struct nodes *n = arg;
	struct node *grown;

	if (!*line || n->count == NODES_MAX)
		return;
	grown = realloc(n->items, (n->count + 1) * sizeof(*grown));
	if (!grown)
		return;
	n->items = grown;
	memset(&grown[n->count], 0, sizeof(*grown));
	grown[n->count].name = strdup(line);
	set_states(&grown[n->count], "unknown to Slurm");
	n->count += grown[n->count].name != NULL;
}

static struct node *find_node(struct nodes *n, const char *name)
{
	for (size_t i = 0; i < n->count; i++)
		if (!strcmp(n->items[i].name, name))
			return &n->items[i];
	return NULL;
}

/* Cut a line "FIRST REST" in two; NULL: it has no blank. */
static char *cut(char *line)
{
	char *rest = strchr(line, ' ');

	if (rest)
		*rest++ = '\0';
	return rest;
}

static void note_slurm_state(void *arg, char *line)
{
	static const char *const good[] = { "idle", "mixed", "allocated",
					    "completing" };
	char *state = cut(line);
	struct node *node = state ? find_node(arg, line) : NULL;

	if (!node)
		return;
	set_states(node, state);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		node->usable |= !strcmp(state, good[i]);
}

/* A line "NODE FILE STATE" of SCRIPT. */
static void note_file(struct node *node, char *file)
{
	char *state = file ? cut(file) : NULL;

	for (int i = 0; state && i < PARTS; i++)
		if (!strcmp(file, files[i]))
			snprintf(node->state[i], STATE_LEN, "%s", state);
}

static void note_file_there(void *arg, char *line)
{
	char *rest = cut(line);
	struct node *node = find_node(arg, line);

	if (node)
		note_file(node, rest);
}

static void note_file_here(void *arg, char *line)
{
	note_file(arg, cut(line));
}

static bool list_nodes(struct nodes *n, const char *list)
{
	char *expand[] = { "scontrol", "show", "hostnames", (char *)list,
			   NULL };
	char *states[] = { "sinfo", "-h", "-N", "-n", (char *)list, "-o",
			   "%N %T", NULL };

	if (probe_process_read(expand, add_node, n) || n->count == 0) {
		fprintf(stderr, "pmi2x-probe: %s is no node list\n", list);
		return false;
	}
	return !probe_process_read(states, note_slurm_state, n);
}

static void free_nodes(struct nodes *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->items[i].name);
	free(n->items);
}

/* ---- the files ---- */

static void note_plugin_dir(void *arg, char *line)
{
	char *value = strchr(line, '=');

	if (strncmp(line, "PluginDir", 9) || !value)
		return;
	value += 1 + strspn(value + 1, " ");
	snprintf(arg, LINE_LEN, "%s", value);
}

static bool read_plugin_dir(char *out)
{
	char *argv[] = { "scontrol", "show", "config", NULL };

	*out = '\0';
	if (!probe_process_read(argv, note_plugin_dir, out) && *out)
		return true;
	fputs("pmi2x-probe: \"scontrol show config\" does not tell PluginDir; "
	      "are slurmctld and munge running?\n", stderr);
	return false;
}

/*
 * $0: the directories of PluginDir; $1: the agent's file; $2: the name to print. The
 * number behind libpmix.so. is not the release, but the file's package says which.
 */
static const char SCRIPT[] =
	"say() { if [ -r \"$2\" ]; then b=$(LC_ALL=C tr -c '[:print:]' '\\n' <\"$2\" | "
	"sed -n 's/^pmi2x build \\([^ ]* protocol [0-9]*\\)$/\\1/p'); "
	"echo \"$name $1 ${b:-unknown build}\"; else echo \"$name $1 missing\"; fi; }; "
	"name=${2:-$SLURMD_NODENAME}; agent=$1; p=; IFS=:; "
	"for d in $0; do [ -r \"$d/mpi_pmi2x.so\" ] && p=${p:-$d/mpi_pmi2x.so}; done; "
	"unset IFS; say mpi_pmi2x.so \"$p\"; say pmi2x-agent \"$agent\"; "
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

	set_states(here, "missing");
	probe_process_read(argv, note_file_here, here);
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
			 "--immediate=" WAIT_SECONDS, "sh", "-c",
			 (char *)SCRIPT, dirs, AGENT_PROGRAM, NULL };
	bool ok = list != NULL;

	snprintf(nodes, sizeof(nodes), "%zu", count);
	for (size_t i = 0; i < n->count; i++)
		if (n->items[i].usable)
			set_states(&n->items[i], "no answer");
	if (ok && count)
		ok = !probe_process_read(argv, note_file_there, n);
	free(list);
	return ok;
}

/* ---- the verdict ---- */

static bool is_build(const char *state)
{
	return *state >= '0' && *state <= '9';
}

/* Of the first node where this part says its build, or NULL. */
static const char *first_build(const struct nodes *n, enum part part)
{
	for (size_t i = 0; i < n->count; i++)
		if (is_build(n->items[i].state[part]))
			return n->items[i].state[part];
	return NULL;
}

/*
 * What all should have: the plugin's build here, else that of the first node with one.
 * Where there is no plugin at all, agents are compared with the first one.
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

static const char *verdict_on(const char *state, const char *want)
{
	if (!is_build(state))
		return state;
	if (!strcmp(state, want))
		return "ok";
	return same_protocol(state, want) ? "another build" :
					    "another protocol";
}

static bool print_row(const struct node *node, enum part part, const char *want)
{
	const char *state = node->state[part];

	printf("%-24s %-13s %-32s %s\n", node->name, files[part],
	       is_build(state) ? state : "-", verdict_on(state, want));
	return is_build(state) && !strcmp(state, want);
}

/* Clients of PMIx need it, nobody else. */
static void print_libpmix(const struct node *node)
{
	const char *state = node->state[LIBPMIX];
	bool missing = !strcmp(state, "missing");

	printf("%-24s %-13s %-32s %s\n", node->name, files[LIBPMIX],
	       missing ? "-" : state,
	       missing ? "missing: no Open MPI there (packages libpmix2, pmix)" : "ok");
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

static int print_table(const struct nodes *n, const struct node *here,
		       const char *dirs)
{
	const char *want = reference(n, here);
	size_t wrong = 0;

	printf("%-24s %-13s %-32s %s\n", "NODE", "FILE", "BUILD", "VERDICT");
	wrong += !print_row(here, PLUGIN, want);
	for (size_t i = 0; i < n->count; i++)
		wrong += !print_node(&n->items[i], want);
	if (!wrong) {
		printf("\nAll have the same build: mpi_pmi2x.so in %s, and\n%s.\n",
		       dirs, AGENT_PROGRAM);
		return PROBE_OK;
	}
	printf("\n%zu of %zu differ. Install the same mpi_pmi2x.so in %s on "
	       "login, compute\nand controller hosts, and pmi2x-agent as %s\n"
	       "on compute hosts; then run \"scontrol reconfigure\" (slurmd finds "
	       "new\nplugins only then).\n",
	       wrong, n->count + 1, dirs, AGENT_PROGRAM);
	return PROBE_FAILED;
}

int probe_nodes(const char *list)
{
	struct nodes nodes = { NULL, 0 };
	struct node here = { .name = "(this host)" };
	char dirs[LINE_LEN];
	int status = PROBE_FAILED;

	if (getenv("PMI_FD")) {
		fputs("pmi2x-probe: --nodes starts a step of its own: run it "
		      "outside of srun\n", stderr);
		return PROBE_USAGE;
	}
	if (read_plugin_dir(dirs) && list_nodes(&nodes, list)) {
		look_here(dirs, &here);
		if (!look_there(&nodes, dirs))
			fputs("pmi2x-probe: srun did not end well; what it "
			      "did tell is below\n", stderr);
		status = print_table(&nodes, &here, dirs);
	}
	free_nodes(&nodes);
	return status;
}
