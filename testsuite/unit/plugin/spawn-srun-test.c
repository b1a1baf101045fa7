/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Spawn requests as srun command lines: words, quoting, placement, environment. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "launch_env.h"
#include "spawn_srun.h"
#include "strvec.h"

static char *nodes[] = { "n1", "n2", NULL };

/* Names separated by commas are all the test needs. */
static char **expand(const char *list, uint32_t *count)
{
	struct strvec w = { 0 };
	char *copy = strdup(list), *rest = copy, *item, **out;

	while ((item = strsep(&rest, ",")))
		strvec_add(&w, item);
	*count = (uint32_t)w.count;
	free(copy);
	assert_int_equal(strvec_end(&w, &out), 0);
	return out;
}

static const struct spawn_place place = {
	.srun = "/usr/bin/srun",
	.job_id = 7,
	.jobid = "7.0",
	.nodes = nodes,
	.nnodes = 2,
	.universe_size = 4,
	.expand = expand,
};

static void end(void *request)
{
	spawn_free(request);
}

#define SPAWN_TEST(name) TEST_ON(name, struct spawn_request *r, unit_at_end(end, spawn_new()))

static void add_command(struct spawn_request *r, const char *program,
			uint32_t nprocs)
{
	assert_int_equal(spawn_add_command(r), 0);
	assert_int_equal(spawn_set_program(r, program, strlen(program)), 0);
	assert_int_equal(spawn_set_nprocs(r, nprocs), 0);
}

static void add_info(struct spawn_request *r, const char *key, const char *value)
{
	const struct pmi_field pair = { key, value, (uint32_t)strlen(key),
					(uint32_t)strlen(value) };

	assert_int_equal(spawn_add_info(r, &pair), 0);
}

static bool has(char **words, const char *word)
{
	for (; *words; words++)
		if (!strcmp(*words, word))
			return true;
	return false;
}

static const char *last(char **words)
{
	while (words[1])
		words++;
	return *words;
}

/* The script prints this text when it runs as rank `rank`. */
static void expect_output(char **words, const char *rank, const char *text)
{
	char out[256];
	FILE *pipe;
	size_t len;

	setenv("PMI_RANK", rank, 1);
	setenv("SCRIPT", last(words), 1);
	pipe = popen("exec /bin/sh -c \"$SCRIPT\"", "r");
	assert_non_null(pipe);
	len = fread(out, 1, sizeof(out) - 1, pipe);
	out[len] = '\0';
	pclose(pipe);
	assert_string_equal(out, text);
}

SPAWN_TEST(one_command_is_run_as_it_is)
{
	char **args;

	add_command(r, "prog", 3);
	spawn_add_arg(r, "it's $HOME", 10);
	assert_int_equal(spawn_srun_args(r, &place, &args), 0);
	assert_string_equal(args[0], "/usr/bin/srun");
	assert_true(has(args, "--mpi=pmi2x"));
	assert_true(has(args, "--jobid=7"));
	assert_true(has(args, "--overlap"));
	assert_true(has(args, "--ntasks=3"));
	assert_false(has(args, "--overcommit"));
	assert_true(has(args, "prog"));
	assert_string_equal(last(args), "it's $HOME");
	strvec_free(args);
}

SPAWN_TEST(more_processes_than_processors_share)
{
	char **args;

	add_command(r, "prog", 5);
	assert_int_equal(spawn_srun_args(r, &place, &args), 0);
	assert_true(has(args, "--overcommit"));
	strvec_free(args);
}

SPAWN_TEST(each_rank_runs_its_command)
{
	char **args;

	add_command(r, "echo", 2);
	spawn_add_arg(r, "it's `a` \"b\" $c", 15);
	add_command(r, "pwd", 1);
	add_info(r, "wdir", "/usr");
	assert_int_equal(spawn_srun_args(r, &place, &args), 0);
	assert_true(has(args, "--ntasks=3"));
	expect_output(args, "0", "it's `a` \"b\" $c\n");
	expect_output(args, "1", "it's `a` \"b\" $c\n");
	expect_output(args, "2", "/usr\n");
	strvec_free(args);
}

/* Text that a shell cannot have as a variable is left out. */
SPAWN_TEST(a_command_has_its_environment)
{
	char **args;

	add_command(r, "sh", 1);
	spawn_add_arg(r, "-c", 2);
	spawn_add_arg(r, "echo \"$A $B\"", 12);
	add_info(r, "env", "A=it's $HOME");
	add_info(r, "env", "1=; exit 3");
	add_info(r, "env", "none");
	add_info(r, "env", "B=b=c");
	assert_int_equal(spawn_srun_args(r, &place, &args), 0);
	expect_output(args, "0", "it's $HOME b=c\n");
	strvec_free(args);
}

SPAWN_TEST(path_is_searched_first)
{
	char **args;

	add_command(r, "sh", 1);
	spawn_add_arg(r, "-c", 2);
	spawn_add_arg(r, "echo $0", 7);
	add_info(r, "path", "/nowhere::/bin");
	assert_int_equal(spawn_srun_args(r, &place, &args), 0);
	expect_output(args, "0", "/bin/sh\n");
	strvec_free(args);
}

SPAWN_TEST(hosts_become_one_name_a_process)
{
	char **args;

	add_command(r, "a", 4);
	add_info(r, "host", "n3,n4");
	add_command(r, "b", 2);
	assert_int_equal(spawn_srun_args(r, &place, &args), 0);
	assert_true(has(args, "--distribution=arbitrary"));
	assert_true(has(args, "--nodelist=n3,n3,n4,n4,n1,n2"));
	strvec_free(args);
}

SPAWN_TEST(spawn_that_does_not_fit_is_rejected)
{
	char **args = NULL, *word = malloc(60000);

	memset(word, 'x', 60000);
	add_command(r, "a", 1);
	add_command(r, "b", 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(spawn_add_arg(r, word, 60000), 0);
	assert_int_equal(spawn_srun_args(r, &place, &args), -E2BIG);
	assert_null(args);
	free(word);
}

SPAWN_TEST(environment_drops_the_spawning_step)
{
	char *env[] = { "HOME=/root", "SLURM_NTASKS=9", "SLURM_JOB_ID=3",
			"SLURM_JOB_NUM_NODES=2", "SLURM_JOB_NAME=x",
			"SLURM_CONF=/c", "SLURM_SACK_SOCKET=/s",
			"SLURM_STEP_ID=0", "PMI2X_SPAWN_FD=5", "PMI2X_APPS=1,1",
			"PMI2X_TREE_WIDTH=4", NULL };
	const struct pmi_field pair = { "k", "v", 1, 1 };
	char **out;

	add_command(r, "a", 3);
	add_command(r, "b", 2);
	assert_int_equal(spawn_add_preput(r, &pair), 0);
	assert_int_equal(spawn_srun_env(r, &place, env, 12, &out), 0);
	assert_true(has(out, "HOME=/root"));
	assert_true(has(out, "SLURM_CONF=/c"));
	assert_true(has(out, "SLURM_SACK_SOCKET=/s"));
	assert_true(has(out, "SLURM_JOB_NAME=x"));
	assert_true(has(out, "PMI2X_TREE_WIDTH=4"));
	assert_true(has(out, "PMI2X_SPAWN_FD=12"));
	assert_true(has(out, "PMI2X_SPAWNER_JOBID=7.0"));
	assert_true(has(out, "PMI2X_APPS=3,2"));
	assert_false(has(out, "PMI2X_APPS=1,1"));
	assert_false(has(out, "PMI2X_SPAWN_FD=5"));
	assert_false(has(out, "SLURM_NTASKS=9"));
	assert_false(has(out, "SLURM_JOB_ID=3"));
	assert_false(has(out, "SLURM_JOB_NUM_NODES=2"));
	assert_false(has(out, "SLURM_STEP_ID=0"));
	assert_string_equal(last(out),
			    "PMI2X_PREPUT=01000000010000006b007600");
	strvec_free(out);
}

/* Linux wants no longer word; what is longer must not come to a kernel's E2BIG. */
TEST(records_fill_one_word_at_most)
{
	static char value[LAUNCH_PREPUT_MAX + 1];
	char *env[] = { NULL }, **out;

	for (size_t more = 0; more < 2; more++) {
		const struct pmi_field pair = {
			"k", value, 1, LAUNCH_PREPUT_MAX / 4 * 4 - 11 + more
		};
		struct spawn_request *r = spawn_new();

		memset(value, 'v', pair.value_len);
		add_command(r, "a", 1);
		assert_int_equal(spawn_add_preput(r, &pair), 0);
		assert_int_equal(spawn_srun_env(r, &place, env, 12, &out),
				 more ? -E2BIG : 0);
		if (!more)
			assert_in_range(strlen(last(out)) + 1,
					SPAWN_WORD_MAX - 8, SPAWN_WORD_MAX);
		strvec_free(out);
		spawn_free(r);
	}
}

TEST(processors_are_summed)
{
	assert_int_equal(launch_cpus("4"), 4);
	assert_int_equal(launch_cpus("4,2(x3)"), 10);
	assert_int_equal(launch_cpus("256(x16),1"), 4097);
	assert_int_equal(launch_cpus(""), 0);
	assert_int_equal(launch_cpus("4,"), 0);
	assert_int_equal(launch_cpus("4(x"), 0);
	assert_int_equal(launch_cpus("-4"), 0);
	assert_int_equal(launch_cpus("2147483647(x3)"), 0);
}

TEST(names_of_steps)
{
	char *name = launch_jobid(UINT32_MAX, 0);

	assert_string_equal(name, "4294967295.0");
	assert_true(launch_is_jobid(name));
	free(name);
	assert_true(launch_is_jobid("1.4294967290"));
	assert_false(launch_is_jobid(""));
	assert_false(launch_is_jobid("."));
	assert_false(launch_is_jobid("1."));
	assert_false(launch_is_jobid(".1"));
	assert_false(launch_is_jobid("1.0.0"));
	assert_false(launch_is_jobid("1.0\n"));
	assert_false(launch_is_jobid("/1.0"));
	assert_false(launch_is_jobid("4294967296.0"));
	assert_false(launch_is_jobid("00000000001.0"));
}
