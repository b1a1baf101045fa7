/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of srun, as those of pmi2x-dvm run. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "dvm/cli/srun_options.h"

#define WORDS_MAX 40

/* The words of run for this command, with blanks between them; "": a real srun reads it. */
static const char *as_run(const char *command)
{
	static char out[2048];
	char text[1024], *words[WORDS_MAX] = { "srun" }, **run;
	int argc = 1, count;

	snprintf(text, sizeof(text), "%s", command);
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
		words[argc++] = w;
	*out = '\0';
	run = srun_options_read(argc, words, &count);
	for (int i = 0; i < count; i++) {
		strcat(strcat(out, i ? " " : ""), run[i]);
		free(run[i]);
	}
	free(run);
	return out;
}

static const struct {
	const char *engine, *srun, *run;
} steps[] = {
	{ "radical.pilot", "--export=ALL --nodes 1 --ntasks 1 --cpus-per-task 2 --mem 0 --nodelist=n2 x",
	  "run --ranks=1 --nodes=1 --cores=2 --nodelist=n2 -- x" },
	{ "radical.pilot, ranks", "--export=ALL -K0 --nodes 1 --ntasks 4 --cpus-per-task 1 --mem 0 --nodelist=n2 x",
	  "run --ranks=4 --nodes=1 --cores=1 --nodelist=n2 -- x" },
	{ "radical.pilot, MPI",
	  "--export=ALL -K1 --quit-on-interrupt --exact --nodes 2 --ntasks 4 --cpus-per-task 1 --threads-per-core 2 --mem 512 --gpus-per-task 1 --gpu-bind closest --nodelist=b,a x",
	  "run --ranks=4 --nodes=2 --cores=1 --gpus=1 --mem=268435456 --nodelist=b,a -- x" },
	{ "executorlib", "-n 2 -D /tmp -N 1 --mpi=pmi2 --cpus-per-task=3 --gpus-per-task=1 --exact --time=5 x -c y",
	  "run --ranks=2 --nodes=1 --cores=3 --gpus=1 --time=300s --chdir=/tmp --pmi -- x -c y" },
	{ "libensemble", "-w node-1,node-2 --ntasks 8 --nodes 2 --ntasks-per-node 4 --gpus-per-task 1 --exact x",
	  "run --ranks=8 --nodes=2 --per-node=4 --gpus=1 --nodelist=node-1,node-2 -- x" },
	{ "letters", "-n4 -N2 -c1 -w n[1-2] -Kx x", "" },
	{ "letters", "-n4 -N2 -c1 -wn[1-2] -K x", "run --ranks=4 --nodes=2 --cores=1 --nodelist=n[1-2] -- x" },
	{ "nodes", "--nodes=2 --ntasks-per-node=3 -- x", "run --ranks=6 --nodes=2 --per-node=3 -- x" },
	{ "no PMI", "-n1 --mpi=none x -n 3", "run --ranks=1 -- x -n 3" },
};

TEST(steps_of_engines_are_tasks)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		assert_string_equal(as_run(steps[i].srun), steps[i].run);
}

TEST(other_steps_are_for_a_real_srun)
{
	static const char *const others[] = {
		"", "-V", "--version", "--help", "x", "-n1", "-n1 --", "-n", "-n1 --mpi", "-N1 x",
		"-n0 x", "-n-1 x", "-n1x x", "-n99999999999 x", "--ntasks= x", "--nodes=1-2 -n2 x",
		"--nodes=3 -n2 x", "-n2 -N1 -w a,b x", "-n4 -N3 -w a,b x", "-n1 -w n[ x",
		"-n1 -w a -w b x", "-n1 -w ./file x", "--nodefile=/nowhere -n1 x", "-n1 --mpi=openmpi x",
		"-n1 --export=NONE x", "-n1 --export=A=1 x", "-n1 --gpu-bind=none x",
		"-n1 --gpus-per-task=a100:1 x", "-n1 --mem=1P x", "-n1 --mem=9999999999 x",
		"-n1 --mem=4000000000T x", "-n1 --time=soon x", "-n1 --exact=1 x", "-n1 --exac x",
		"-n1 -K2 x", "-n1 -l x", "-n1 -i all x", "-n1 --overlap x", "-n1 --input=all x",
		"-n1 x : -n1 y", "--mpi=none --overlap --no-kill -K0 --mem=0 --cpu-bind=none --input=all --nodes=2 --ntasks=2 --ntasks-per-node=1 x",
		"-n1 - x", "-n1 --jobid=3 x", "-n1 -D", "-n1 --het-group=1 x",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_string_equal(as_run(others[i]), "");
}

TEST(file_has_the_names_of_nodes)
{
	char path[] = "/tmp/nodes-XXXXXX", command[64];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "n3,n1\nn7\n", 9), 9);
	snprintf(command, sizeof(command), "--nodefile=%s -n3 x", path);
	assert_string_equal(as_run(command), "run --ranks=3 --nodes=3 --nodelist=n3,n1,n7 -- x");
	unlink(path);
	close(fd);
}
