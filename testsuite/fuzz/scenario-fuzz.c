/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scenario files of the simulator: any text is refused with a message, or gives a
 * scenario within its bounds, which can be simulated. The first byte: whether
 * the lines are a file, or given with --set.
 */
#include "fuzz.h"

#include "sim.h"

#define SMALL 24 /* ranks of a step that is simulated */

static void check_message(const char error[SCENARIO_ERROR_MAX],
			  const char *where)
{
	size_t len = strnlen(error, SCENARIO_ERROR_MAX);

	FUZZ_CHECK(len > strlen(where) && len < SCENARIO_ERROR_MAX);
	FUZZ_CHECK(strncmp(error, where, strlen(where)) == 0);
}

static int set_lines(struct scenario *s, char *text,
		     char error[SCENARIO_ERROR_MAX])
{
	char *rest, *line = strtok_r(text, "\n", &rest);
	int rc = 0;

	for (; line && !rc; line = strtok_r(NULL, "\n", &rest))
		rc = scenario_set(s, line, error);
	return rc;
}

static void check_bounds(const struct scenario *s)
{
	const char *allowed;

	FUZZ_CHECK(s->nodes >= 1 && s->nodes <= 1048576);
	FUZZ_CHECK(s->ranks_per_node >= 1 && s->ranks_per_node <= 65536);
	FUZZ_CHECK(s->tree_width == TREE_WIDTH_AUTO ||
		   (s->tree_width >= TREE_WIDTH_MIN &&
		    s->tree_width <= TREE_WIDTH_MAX));
	FUZZ_CHECK(s->nops >= 1 && s->nops <= SCENARIO_OPS_MAX);
	FUZZ_CHECK(s->nfaults <= SCENARIO_FAULTS_MAX);
	FUZZ_CHECK(s->nslow <= SCENARIO_FAULTS_MAX);
	for (uint32_t i = 0; i < s->nops; i++)
		FUZZ_CHECK(scenario_op_name(&s->ops[i])[0] != '?');
	for (uint32_t i = 0; i < s->nfaults; i++)
		FUZZ_CHECK(s->faults[i].at >= 0);
	FUZZ_CHECK(s->clients == CLIENTS_NONE ||
		   !scenario_unable(s, s->clients, &allowed));
}

static bool is_small(const struct scenario *s)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < s->nops; i++)
		bytes += (uint64_t)s->ops[i].bytes * s->ops[i].keys;
	return s->nodes * s->ranks_per_node <= SMALL && s->nops <= 4 &&
	       bytes <= 4096 && s->piece >= 256;
}

/* The simulation ends, or reports that times were too long. */
static void simulate(const struct scenario *s)
{
	char error[SCENARIO_ERROR_MAX] = "";
	struct sim *sim = sim_new(s, error);

	if (!sim)
		check_message(error, "");
	else if (sim_run(sim))
		FUZZ_CHECK(strstr(sim->error, "the simulated time exceeds"));
	sim_free(sim);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scenario s;
	struct fuzz_input in = { data, size };
	bool lines = fuzz_u8(&in) % 2;
	char error[SCENARIO_ERROR_MAX] = "", *text = fuzz_copy(in.at, in.left, 1);
	int rc;

	scenario_defaults(&s);
	snprintf(s.name, sizeof(s.name), "file");
	rc = lines ? set_lines(&s, text, error) :
		     scenario_parse(&s, "file", text, error);
	if (rc) {
		check_message(error, lines ? "--set: " : "file");
	} else if (scenario_check(&s, error)) {
		check_message(error, "file");
	} else {
		check_bounds(&s);
		if (is_small(&s))
			simulate(&s);
	}
	free(text);
	return 0;
}
