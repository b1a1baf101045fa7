/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenario files: what they say is understood, what is wrong is named. */
#include "unit.h"

#include <stdio.h>

#include "scenario.h"

static int parse(struct scenario *s, const char *text,
		 char error[SCENARIO_ERROR_MAX])
{
	char copy[4096];
	int rc;

	snprintf(copy, sizeof(copy), "%s", text);
	scenario_defaults(s);
	rc = scenario_parse(s, "x.scenario", copy, error);
	return rc ? rc : scenario_check(s, error);
}

TEST(everything_is_understood)
{
	static struct scenario s;
	char error[SCENARIO_ERROR_MAX] = "";

	assert_int_equal(parse(&s,
		"# a comment\n[step]\nnodes = 4 ; another\n"
		"ranks_per_node=3\nlayout = cyclic\n"
		"piece = 4KiB\nseed = 9\nprotocol = pmi2x\npayload = bytes\n"
		"finalize = no\ntree_width = 3\n\n[launch]\n"
		"skew = normal 1s 20ms\nrank_skew = 5us\n[network]\n"
		"topology = dragonfly 4 8\nlatency = 1.5us\n[node]\ncores = 2\n"
		"[operations]\nrun = fence 64 keys 2 times 3\n"
		"run = ifence 8 compute uniform 1ms\nrun = compute 2s\n"
		"run = ring 0\n[faults]\nrank = 11 at 3ms\nnode = 3 in 2\n"
		"link = 0-1 at 0\nslow_node = 2 factor 2.5\n"
		"slow_link = 0-1 factor 10", error), 0);
	assert_string_equal(error, "");
	assert_int_equal(s.nodes * s.ranks_per_node, 12);
	assert_int_equal(s.layout, RANKS_CYCLIC);
	assert_int_equal(s.piece, 4096);
	assert_false(s.finalize);
	assert_int_equal(s.skew.kind, DISTRIBUTION_NORMAL);
	assert_int_equal(s.skew.b, 20 * SIM_MS);
	assert_int_equal(s.rank_skew.a, 5 * SIM_US);
	assert_int_equal(s.network.topology, TOPOLOGY_DRAGONFLY);
	assert_int_equal(s.network.group, 8);
	assert_int_equal(s.network.latency, 1500 * SIM_NS);
	assert_int_equal(s.nops, 6);
	assert_int_equal(s.ops[2].keys, 2);
	assert_true(s.ops[3].nonblocking);
	assert_int_equal(s.ops[3].compute.kind, DISTRIBUTION_UNIFORM);
	assert_int_equal(s.ops[4].compute.a, 2 * SIM_S);
	assert_int_equal(s.nfaults, 3);
	assert_int_equal(s.faults[0].at, 3 * SIM_MS);
	assert_true(s.faults[1].in_phase);
	assert_int_equal(s.faults[1].phase, 1);
	assert_int_equal(s.nslow, 2);
}

/* Wrong texts, and words that must be in the message. */
static const struct {
	const char *text, *where, *key, *allowed;
} wrong[] = {
	{ "[step]\nnods = 4", ":2:", "nods", "ranks_per_node" },
	{ "[stp]", ":1:", "stp", "operations" },
	{ "nodes = 4", ":1:", "nodes", "[section]" },
	{ "[step]\nnodes", ":2:", "nodes", "key = value" },
	{ "[step]\nnodes = 0", ":2:", "nodes", "1 to 1048576" },
	{ "[step]\nnodes = 9999999", ":2:", "nodes", "1 to 1048576" },
	{ "[step]\nnodes = -4", ":2:", "nodes", "1 to" },
	{ "[step]\nnodes = 4x", ":2:", "nodes", "1 to" },
	{ "[step]\nnodes = 4\nnodes = 5", ":3:", "nodes", "twice" },
	{ "[step]\ntree_width = 1", ":2:", "tree_width", "2 to 1024" },
	{ "[step]\nlayout = round", ":2:", "layout", "cyclic" },
	{ "[step]\nprotocol = mpd", ":2:", "protocol", "hydra-star" },
	{ "[step]\npiece = 0", ":2:", "piece", "1 to 1GiB" },
	{ "[network]\nlatency = 2", ":2:", "latency", "us" },
	{ "[network]\nlatency = 2 miles", ":2:", "latency", "us" },
	{ "[network]\nlatency = nan s", ":2:", "latency", "us" },
	{ "[network]\ntopology = fat-tree 1", ":2:", "topology", "LEAF" },
	{ "[network]\ntopology = torus 3", ":2:", "topology", "dragonfly" },
	{ "[launch]\nskew = normal 1s", ":2:", "skew", "DEVIATION" },
	{ "[launch]\nskew = 1s 2s", ":2:", "skew", "uniform" },
	{ "[operations]\nrun = bcast 4", ":2:", "run", "allgather" },
	{ "[operations]\nrun = fence", ":2:", "run", "BYTES" },
	{ "[operations]\nrun = fence 2MiB", ":2:", "run", "1MiB" },
	{ "[operations]\nrun = ring 4 keys 2", ":2:", "run", "keys" },
	{ "[operations]\nrun = fence 4 times 300", ":2:", "run", "times" },
	{ "[operations]\nrun = fence 4 times 256\nrun = ring 4", ":3:", "run",
	  "256" },
	{ "[step]\nnodes = 2", ":", "run", "operations" },
	{ "[step]\nnodes = 1048576\nranks_per_node = 65536\n[operations]\n"
	  "run = ring 1", ":3:", "ranks_per_node", "67108864" },
	{ "[step]\nclients = pmi1\nprotocol = radix-64\n[operations]\n"
	  "run = fence 1", ":3:", "clients", "none" },
	{ "[step]\nclients = pmi1\n[operations]\nrun = fence 1023\n"
	  "run = ring 1", ":5:", "run: ", "allowed is fence" },
	{ "[step]\nclients = pmi2\n[operations]\nrun = ring 65536\n"
	  "run = fence 1024", ":5:", "run: ", "up to 1023" },
	{ "[step]\nclients = pmi2\n[operations]\nrun = ifence 1", ":4:",
	  "ifence", "allowed is fence" },
	{ "[step]\nclients = pmi2\nkey_bytes = 64\n[operations]\n"
	  "run = fence 1", ":5:", "keys of 64", "up to 63" },
	{ "[step]\nclients = mixed\n[operations]\nrun = allgather 65537",
	  ":4:", "65537", "64KiB" },
	{ "[operations]\nrun = group 0", ":2:", "run", "group EVERY" },
	{ "[step]\nclients = pmi1\n[operations]\nrun = group 1", ":4:", "run",
	  "clients = none" },
	{ "[step]\nprotocol = radix-64\n[operations]\nrun = group 1", ":4:",
	  "run", "protocol = pmi2x" },
	{ "[operations]\nrun = share 8", ":2:", "run", "protocol = store" },
	{ "[step]\nprotocol = store\n[operations]\nrun = share 8\nrun = ring 8", ":5:", "no ring",
	  "share or compute" },
	{ "[step]\nnodes = 131073\n[operations]\nrun = group 2", ":4:",
	  "group 2", "65536" },
	{ "[operations]\nrun = ring 1\n[faults]\nnode = 16 at 1s", ":4:",
	  "node 16", "0 to 15" },
	{ "[operations]\nrun = ring 1\n[faults]\nrank = 16 at 1s", ":4:",
	  "rank 16", "0 to 15" },
	{ "[operations]\nrun = ring 1\n[faults]\nlink = 0-99 at 1s", ":4:",
	  "node 99", "0 to 15" },
	{ "[operations]\nrun = ring 1\n[faults]\nnode = 1 in 2", ":4:",
	  "operation 2", "1 to 1" },
	{ "[operations]\nrun = ring 1\n[faults]\nnode = 1 in 0", ":4:", "node",
	  "from 1" },
	{ "[operations]\nrun = ring 1\n[faults]\nnode = 1", ":4:", "node",
	  "NODE at TIME" },
	{ "[operations]\nrun = ring 1\n[faults]\nlink = 3-3 at 1s", ":4:",
	  "link", "NODE-NODE" },
	{ "[operations]\nrun = ring 1\n[faults]\nslow_node = 99 factor 2",
	  ":4:", "slow_node", "0 to 15" },
	{ "[operations]\nrun = ring 1\n[faults]\nslow_node = 9 factor 0.5",
	  ":4:", "slow_node", "factor NUMBER" },
	{ "[operations]\nrun = ring 1\n[faults]\nhead = 1 at 1s", ":4:", "head",
	  "[workload]" },
	{ "[faults]\nhead = 1 in 1 resume", ":2:", "head", "DVM at TIME resume TIME" },
	{ "[faults]\nnode = 1 at 1s resume 1s", ":2:", "node", "NODE at TIME" },
	{ "[workload]\ntasks = 1 time 1s\n[faults]\nhead = 2 at 1s", ":4:", "head",
	  "1 to 1" },
	{ "[workload]\ntasks = 1 time 1s\n[faults]\nhead = 1 at 1s resume 1s", ":4:",
	  "head", "journal = yes" },
	{ "[workload]\ntasks = 1 time 1s\n[faults]\nnode = 16 at 1s", ":4:", "node",
	  "0 to 15" },
	{ "[workload]\ntasks = 1 time 1s\n[faults]\nnode = 1 in 1", ":4:", "node",
	  "at a time" },
	{ "[workload]\ntasks = 1 time 1s\n[faults]\nlink = 0-1 at 1s", ":4:", "link",
	  "node and head" },
	{ "[workload]\ntasks = 1 time 1s\n[faults]\nslow_node = 16 factor 2", ":4:",
	  "slow_node", "0 to 15" },
	{ "[workload]\ntasks = 1 time 1s\n[faults]\nslow_link = 1-2 factor 2", ":4:",
	  "slow_link", "slow_node" },
	{ "[workload]\ntasks = 1 time 1s\nfile = a.csv", ":3:", "file", "not both" },
	{ "[workload]\ntasks = 1 time 2s-1s", ":2:", "tasks", "COUNT" },
	{ "[workload]\ntasks = 1 time normal 2s", ":2:", "tasks", "MEAN DEVIATION" },
};

TEST(errors_in_a_scenario_are_named)
{
	static struct scenario s;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char error[SCENARIO_ERROR_MAX] = "";

		if (parse(&s, wrong[i].text, error) == 0)
			fail_msg("accepted: %s", wrong[i].text);
		if (strncmp(error, "x.scenario:", 11) != 0 ||
		    !strstr(error, wrong[i].where) ||
		    !strstr(error, wrong[i].key) ||
		    !strstr(error, wrong[i].allowed))
			fail_msg("%s\nsays: %s", wrong[i].text, error);
	}
}

/* ---- every key ---- */

/* No key takes any of these. */
static const char *const nonsense[] = {
	"", "?", "-1", "1 2 3 4 5", "99999999999999999999999", "1e400s",
	"none of these", "\x7f",
};

/* Sets a key in the second line of a file; what is said must begin like that. */
static void refuse_value(const char *section, const char *key,
			 const char *value, const char *allowed)
{
	static struct scenario s;
	char text[256], error[SCENARIO_ERROR_MAX] = "";
	char expected[SCENARIO_ERROR_MAX];

	snprintf(text, sizeof(text), "[%s]\n%s = %s\n", section, key, value);
	snprintf(expected, sizeof(expected), "x.scenario:2: %s: allowed is %s",
		 key, allowed);
	if (!parse(&s, text, error))
		fail_msg("accepted: %s", text);
	assert_string_equal(error, expected);
}

static void accept_value(const char *section, const char *key, uint64_t value)
{
	static struct scenario s;
	char text[256], error[SCENARIO_ERROR_MAX] = "";

	snprintf(text, sizeof(text), "[%s]\n%s = %llu\n", section, key,
		 (unsigned long long)value);
	scenario_defaults(&s);
	if (scenario_parse(&s, "x.scenario", text, error))
		fail_msg("%s", error);
}

static void check_bounds(const char *section, const char *key,
			 const char *allowed)
{
	unsigned long long low, high;
	char value[32];

	if (sscanf(allowed, "a number from %llu to %llu", &low, &high) != 2)
		return;
	accept_value(section, key, low);
	accept_value(section, key, high);
	snprintf(value, sizeof(value), "%llu", high + 1);
	refuse_value(section, key, value, allowed);
	snprintf(value, sizeof(value), "%llu", low - 1);
	if (low)
		refuse_value(section, key, value, allowed);
}

static void check_key(void *arg, const char *section, const char *key,
		      const char *preset, const char *allowed)
{
	static struct scenario s;
	char text[256], error[SCENARIO_ERROR_MAX] = "";
	unsigned int *keys = arg;

	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
		refuse_value(section, key, nonsense[i], allowed);
	check_bounds(section, key, allowed);
	snprintf(text, sizeof(text), "[%s]\nno_%s = 1\n", section, key);
	assert_int_equal(parse(&s, text, error), -1);
	if (strncmp(error, "x.scenario:2: no_", 17) != 0 || !strstr(error, key))
		fail_msg("%s says: %s", text, error);
	if (preset) { /* what is said to be the default is one */
		snprintf(text, sizeof(text), "[%s]\n%s = %s\n", section, key,
			 preset);
		scenario_defaults(&s);
		assert_int_equal(scenario_parse(&s, "x", text, error), 0);
	}
	(*keys)++;
}

TEST(wrong_values_of_every_key_are_named)
{
	unsigned int keys = 0;

	scenario_list_keys(check_key, &keys);
	print_message("%u keys\n", keys);
	assert_true(keys > 30);
}

/* ---- files of tasks ---- */

static int read_tasks(struct workload_tasks *out, const char *text,
		      char error[WORKLOAD_ERROR_MAX])
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", text);
	return workload_read_file("t.csv", copy, out, error);
}

TEST(a_file_of_tasks_has_defaults_and_ignored_columns)
{
	char error[WORKLOAD_ERROR_MAX] = "";
	struct workload w;
	struct workload_tasks tasks;
	struct workload_task t;

	assert_int_equal(read_tasks(&tasks, "dvm,seconds,cores,nodes\r\n1,0.5,3,2\r\n\n1,2,,\n",
				    error), 0);
	workload_begin_file(&w, &tasks);
	assert_true(workload_next(&w, &t));
	assert_int_equal(t.time, SIM_S / 2);
	assert_int_equal(t.cores, 3);
	assert_int_equal(t.nodes, 2);
	assert_int_equal(t.ranks, 1);
	assert_true(workload_next(&w, &t));
	assert_int_equal(t.time, 2 * SIM_S);
	assert_int_equal(t.cores, 1);
	assert_int_equal(t.line, 4);
	assert_false(workload_next(&w, &t));
	free(tasks.tasks);
}

/* Wrong files, and how the messages begin. */
static const char *const wrong_files[][2] = {
	{ "", "t.csv:1: there is no task" },
	{ "cores\n1\n", "t.csv:1: seconds: the column is missing" },
	{ "core,seconds\n1,1\n", "t.csv:1: core: there is no such column; allowed are ranks" },
	{ "seconds,seconds\n1,1\n", "t.csv:1: seconds: the column is there twice" },
	{ "seconds\n1\n0\n", "t.csv:3: seconds: allowed is a number above 0" },
	{ "seconds\n1s\n", "t.csv:2: seconds: allowed is" },
	{ "gpus,seconds\n-1,1\n", "t.csv:2: gpus: allowed is a number from 0 to 1048576" },
	{ "ranks,seconds\n1048577,1\n", "t.csv:2: ranks: allowed is a number from 1 to 1048576" },
	{ "ranks,seconds\n1\n", "t.csv:2: seconds: allowed is" },
	{ "seconds\n1,1\n", "t.csv:2: there are more fields" },
};

TEST(errors_in_a_file_of_tasks_are_named)
{
	struct workload_tasks tasks;
	char error[WORKLOAD_ERROR_MAX];

	for (size_t i = 0; i < sizeof(wrong_files) / sizeof(*wrong_files); i++) {
		const char *expected = wrong_files[i][1];

		*error = '\0';
		assert_int_equal(read_tasks(&tasks, wrong_files[i][0], error), -1);
		if (strncmp(error, expected, strlen(expected)))
			fail_msg("expected: %s\nsays: %s", expected, error);
		assert_null(tasks.tasks);
	}
}

TEST(long_lines_are_refused)
{
	static struct scenario s;
	char text[SCENARIO_LINE_MAX + 16], error[SCENARIO_ERROR_MAX];

	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(parse(&s, text, error), -1);
	assert_non_null(strstr(error, "512 bytes"));
}

TEST(a_key_is_set_over_a_file)
{
	static struct scenario s;
	char error[SCENARIO_ERROR_MAX], good[] = "nodes=5", bad[] = "nodes=x";
	char none[] = "x=5";

	assert_int_equal(parse(&s, "[operations]\nrun = ring 1", error), 0);
	assert_int_equal(scenario_set(&s, good, error), 0);
	assert_int_equal(s.nodes, 5);
	assert_int_equal(scenario_set(&s, bad, error), -1);
	assert_non_null(strstr(error, "--set: nodes"));
	assert_int_equal(scenario_set(&s, none, error), -1);
}
