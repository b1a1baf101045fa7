/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-probe --nodes: which nodes lack the plugin, or have another build of it.
 *
 * Runs one step without MPI over the nodes, whose tasks print what mpi_pmi2x.so says
 * of itself (libio/protocol.h). Nothing of pmi2x need be installed there for that.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

#define NODES_MAX 65536
#define LINE_LEN 4096
#define STATE_LEN 64
#define WAIT_SECONDS "60" /* for the nodes to become free */

struct node {
	char *name;
	char state[STATE_LEN]; /* build and protocol, "missing", or why not */
	bool usable;           /* Slurm would run a step there */
};

struct nodes {
	struct node *items;
	size_t count;
};

/* ---- running programs ---- */

struct pipe_reader {
	FILE *from;
	pid_t pid;
};

static void exec_into(int fd, char *const argv[])
{
	dup2(fd, STDOUT_FILENO);
	close(fd);
	execvp(argv[0], argv);
	fprintf(stderr, "pmi2x-probe: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static bool start_program(struct pipe_reader *r, char *const argv[])
{
	int fds[2];

	if (pipe(fds))
		return false;
	r->pid = fork();
	if (r->pid == 0) {
		close(fds[0]);
		exec_into(fds[1], argv);
	}
	close(fds[1]);
	r->from = r->pid > 0 ? fdopen(fds[0], "r") : NULL;
	if (!r->from)
		close(fds[0]);
	return r->from != NULL;
}

static bool end_program(struct pipe_reader *r)
{
	int status;

	fclose(r->from);
	return waitpid(r->pid, &status, 0) == r->pid && status == 0;
}

/* Run a program; hand every line of its output, without newline, to `use`. */
static bool read_program(char *const argv[],
			 void (*use)(void *arg, char *line), void *arg)
{
	struct pipe_reader r;
	char line[LINE_LEN];

	if (!start_program(&r, argv)) {
		perror("pmi2x-probe: fork");
		return false;
	}
	while (fgets(line, sizeof(line), r.from)) {
		line[strcspn(line, "\n")] = '\0';
		use(arg, line);
	}
	return end_program(&r);
}

/* ---- the nodes ---- */

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
	strcpy(grown[n->count].state, "unknown to Slurm");
	n->count += grown[n->count].name != NULL;
}

static struct node *find_node(struct nodes *n, const char *name)
{
	for (size_t i = 0; i < n->count; i++)
		if (!strcmp(n->items[i].name, name))
			return &n->items[i];
	return NULL;
}

/* A line "NAME REST": REST is the new state of the node. */
static struct node *set_state(struct nodes *n, char *line)
{
	char *rest = strchr(line, ' ');
	struct node *node;

	if (!rest)
		return NULL;
	*rest++ = '\0';
	node = find_node(n, line);
	if (node)
		snprintf(node->state, sizeof(node->state), "%s", rest);
	return node;
}

static void note_slurm_state(void *arg, char *line)
{
	static const char *const good[] = { "idle", "mixed", "allocated",
					    "completing" };
	struct node *node = set_state(arg, line);

	for (size_t i = 0; node && i < sizeof(good) / sizeof(good[0]); i++)
		if (!strcmp(node->state, good[i]))
			node->usable = true;
}

static void note_build(void *arg, char *line)
{
	set_state(arg, line);
}

static bool list_nodes(struct nodes *n, const char *list)
{
	char *expand[] = { "scontrol", "show", "hostnames", (char *)list,
			   NULL };
	char *states[] = { "sinfo", "-h", "-N", "-n", (char *)list, "-o",
			   "%N %T", NULL };

	if (!read_program(expand, add_node, n) || n->count == 0) {
		fprintf(stderr, "pmi2x-probe: %s is no node list\n", list);
		return false;
	}
	return read_program(states, note_slurm_state, n);
}

static void free_nodes(struct nodes *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->items[i].name);
	free(n->items);
}

/* ---- the plugin ---- */

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
	if (read_program(argv, note_plugin_dir, out) && *out)
		return true;
	fputs("pmi2x-probe: \"scontrol show config\" does not tell PluginDir; "
	      "is slurmctld running?\n", stderr);
	return false;
}

/* $0: the directories of PluginDir; $1: the name to print. */
static const char SCRIPT[] =
	"IFS=:; for d in $0; do f=$d/mpi_pmi2x.so; "
	"if [ -r \"$f\" ]; then set -- \"${1:-$SLURMD_NODENAME}\" "
	"\"$(LC_ALL=C tr -c '[:print:]' '\\n' <\"$f\" | "
	"sed -n 's/^pmi2x build \\([^ ]* protocol [0-9]*\\)$/\\1/p')\"; "
	"echo \"$1 ${2:-unknown build}\"; exit 0; fi; done; "
	"echo \"${1:-$SLURMD_NODENAME} missing\"";

static void copy_rest(void *arg, char *line)
{
	char *rest = strchr(line, ' ');

	snprintf(arg, STATE_LEN, "%s", rest ? rest + 1 : "missing");
}

static void build_here(char *dirs, char *out)
{
	char *argv[] = { "sh", "-c", (char *)SCRIPT, dirs, "here", NULL };

	snprintf(out, STATE_LEN, "missing");
	read_program(argv, copy_rest, out);
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

static bool build_there(struct nodes *n, char *dirs)
{
	size_t count;
	char *list = usable_list(n, &count);
	char nodes[24];
	char *argv[] = { "srun", "--mpi=none", "-w", list, "-N", nodes, "-n",
			 nodes, "--ntasks-per-node=1",
			 "--immediate=" WAIT_SECONDS, "sh", "-c",
			 (char *)SCRIPT, dirs, NULL };
	bool ok = list != NULL;

	snprintf(nodes, sizeof(nodes), "%zu", count);
	for (size_t i = 0; i < n->count; i++)
		if (n->items[i].usable)
			strcpy(n->items[i].state, "no answer");
	if (ok && count)
		ok = read_program(argv, note_build, n);
	free(list);
	return ok;
}

/* ---- the verdict ---- */

static bool is_build(const char *state)
{
	return *state >= '0' && *state <= '9';
}

/* What all should have: the build here, else that of the first node with one. */
static const char *reference(const struct nodes *n, const char *here)
{
	if (is_build(here))
		return here;
	for (size_t i = 0; i < n->count; i++)
		if (is_build(n->items[i].state))
			return n->items[i].state;
	return here;
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

static bool print_row(const char *name, const char *state, const char *want)
{
	printf("%-24s %-30s %s\n", name, is_build(state) ? state : "-",
	       verdict_on(state, want));
	return is_build(state) && !strcmp(state, want);
}

static int print_table(const struct nodes *n, const char *here,
		       const char *dirs)
{
	const char *want = reference(n, here);
	size_t wrong = 0;

	printf("%-24s %-30s %s\n", "NODE", "BUILD", "mpi_pmi2x.so");
	wrong += !print_row("(this host)", here, want);
	for (size_t i = 0; i < n->count; i++)
		wrong += !print_row(n->items[i].name, n->items[i].state, want);
	if (!wrong) {
		printf("\nAll have the same build in %s.\n", dirs);
		return PROBE_OK;
	}
	printf("\n%zu of %zu differ. Install the same mpi_pmi2x.so in %s on "
	       "login, compute\nand controller hosts, then run \"scontrol "
	       "reconfigure\" (slurmd finds new\nplugins only then).\n",
	       wrong, n->count + 1, dirs);
	return PROBE_FAILED;
}

int probe_nodes(const char *list)
{
	struct nodes nodes = { NULL, 0 };
	char dirs[LINE_LEN], here[STATE_LEN];
	int status = PROBE_FAILED;

	if (getenv("PMI_FD")) {
		fputs("pmi2x-probe: --nodes starts a step of its own: run it "
		      "outside of srun\n", stderr);
		return PROBE_USAGE;
	}
	if (read_plugin_dir(dirs) && list_nodes(&nodes, list)) {
		build_here(dirs, here);
		if (!build_there(&nodes, dirs))
			fputs("pmi2x-probe: srun did not end well; what it "
			      "did tell is below\n", stderr);
		status = print_table(&nodes, here, dirs);
	}
	free_nodes(&nodes);
	return status;
}
