/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of prun, as those of pmi2x-dvm run. */
#include "unit.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dvm/cli/prun_options.h"

#define WORDS_MAX 40

static char *dvm; /* that the last command named */

/* The words of run for this command, with blanks between them. */
static const char *as_run(const char *command)
{
	static char out[2048];
	char text[1024], *words[WORDS_MAX] = { "prun" }, **run;
	int argc = 1, count;

	snprintf(text, sizeof(text), "%s", command);
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
		words[argc++] = w;
	*out = '\0';
	optind = 0;
	run = prun_options_read(argc, words, &count, &dvm);
	for (int i = 0; i < count; i++) {
		strcat(strcat(out, i ? " " : ""), run[i]);
		free(run[i]);
	}
	free(run);
	return out;
}

static const struct {
	const char *prun, *run;
} commands[] = {
	/* as RADICAL-Pilot gives them */
	{ "--np 4 --map-by node:HWTCPUS:PE=2:OVERSUBSCRIBE --bind-to hwthread:overload-allowed --host a:2,b:2 --pmixmca ptl_base_max_msg_size 1073741824 --verbose x",
	  "run --ranks=4 --cores=2 --per-node=2 --nodes=2 --nodelist=a,b --pmi -- x" },
	{ "--np 1 --map-by node:HWTCPUS:PE=1:OVERSUBSCRIBE --bind-to hwthread:overload-allowed:REPORT --host a:1 --pmixmca ptl_base_max_msg_size 1 --verbose x -n 3",
	  "run --ranks=1 --cores=1 --per-node=1 --nodes=1 --nodelist=a --pmi -- x -n 3" },
	/* others */
	{ "-np 3 x", "run --ranks=3 --pmi -- x" },
	{ "-n 3 -N 2 -- x", "run --ranks=3 --per-node=2 --pmi -- x" },
	{ "-n 3 --map-by ppr:2:node:PE=4 x", "run --ranks=3 --cores=4 --per-node=2 --pmi -- x" },
	{ "-n 3 --map-by :oversubscribe x", "run --ranks=3 --pmi -- x" },
	{ "-n 3 -H a:2,b -H c,a x", "run --ranks=3 --per-node=2 --nodes=3 --nodelist=a,b,c --pmi -- x" },
	{ "-n 1 --host a,b x", "run --ranks=1 --nodelist=a,b --pmi -- x" },
	{ "-n 1 --wdir /tmp --timeout 9 --prtemca a 1 --mca b 2 x",
	  "run --ranks=1 --time=9s --chdir=/tmp --pmi -- x" },
};

TEST(options_of_prun_are_those_of_run)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		assert_string_equal(as_run(commands[i].prun), commands[i].run);
}

TEST(uri_of_prun_names_the_dvm)
{
	char path[] = "/tmp/uri-XXXXXX", command[64];
	int fd = mkstemp(path);

	assert_int_equal(write(fd, "pmi2x-dvm://b\n", 14), 14);
	close(fd);
	as_run("--dvm-uri pmi2x-dvm://a-1 -n 1 x");
	assert_string_equal(dvm, "a-1");
	free(dvm);
	snprintf(command, sizeof(command), "--dvm-uri file:%s -n 1 x", path);
	as_run(command);
	assert_string_equal(dvm, "b");
	free(dvm);
	as_run("-n 1 x");
	assert_null(dvm);
	unlink(path);
}

TEST(variables_of_prun_are_set)
{
	as_run("-n 1 -x PRUN_TEST=a=b -x HOME x");
	assert_string_equal(getenv("PRUN_TEST"), "a=b");
	unsetenv("PRUN_TEST");
}

/* The exit status of a prun, which says nothing here. */
static int status_of(const char *command)
{
	int status;
	pid_t child = fork();

	if (!child) {
		fclose(stderr);
		as_run(command);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

TEST(wrong_options_of_prun_are_refused_with_2)
{
	static const char *const wrong[] = {
		"-n 1 --no-such x", "-z x", "x", "-n 1", "-n 0 x", "-n x x", "-n", "-n 1 x : -n 1 y",
		"-n 1 --map-by numa x", "-n 1 --map-by node:PE=0 x", "-n 1 --map-by node:PE=x x",
		"-n 1 --map-by ppr:2:socket x", "-n 1 --map-by ppr x", "-n 1 --map-by node:SPAN x",
		"-n 1 --host a:0 x", "-n 1 --host a:*,b x", "-n 1 --host , x", "-n 1 -x =1 x",
		"-n 1 --timeout 0 x", "-n 1 --dvm-uri prte-1@0.0;tcp4://1.2.3.4:5 x",
		"-n 1 --verbose=2 x",
	};

	assert_int_equal(status_of("-n 1 x"), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(status_of(wrong[i]), 2);
}
