/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe --mpi PROGRAM --run: what two ranks of it speak. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/probe.h"
#include "tools/probe_mpi.h"
#include "tools/probe_process.h"

#define RANKS 2
#define LAUNCHER_WORDS_MAX 32
#define WORDS_MAX 4096

static const char SRUN[] = "srun --mpi=pmi2x --overlap --overcommit -N1 -n2";
static const char SERVER[] = PROBE_SERVER " -n2";

static const struct kind {
	const char *text;
	int status;
} kinds[] = {
	{ PROBE_SPOKE_PMI1, PROBE_OK },
	{ PROBE_SPOKE_PMI2, PROBE_OK },
	{ PROBE_SPOKE_NOTHING, PROBE_NO_CLIENT },
	{ PROBE_SPOKE_OTHER, PROBE_FAILED },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct count {
	int of[KINDS]; /* ranks that have spoken it */
	bool blank;    /* an empty line that may belong to a witness */
};

static void count_rank(struct count *c, const char *said)
{
	for (size_t i = 0; i < KINDS; i++)
		c->of[i] += !strcmp(said, kinds[i].text);
	c->blank = false;
}

/* Lines of the program go on; lines of its witnesses are counted. */
static void take_line(void *arg, char *line)
{
	char *said = strstr(line, PROBE_SPOKE);
	struct count *c = arg;

	if (said) {
		count_rank(c, said + strlen(PROBE_SPOKE));
		return;
	}
	if (c->blank)
		puts("");
	c->blank = !*line;
	if (*line)
		puts(line);
}

static const char *launcher(void)
{
	const char *own = getenv(PROBE_LAUNCHER_ENV);

	if (own && *own)
		return own;
	return getenv("SLURM_JOB_ID") ? SRUN : SERVER;
}

/* The launcher's words, this program as the witness, and the program. */
static bool make_command(char *words[WORDS_MAX], char *launch, char *self,
			 char *const argv[])
{
	int n = 0;

	for (char *w = strtok(launch, " "); w && n < LAUNCHER_WORDS_MAX;
	     w = strtok(NULL, " "))
		words[n++] = w;
	words[n++] = self;
	words[n++] = "--witness";
	for (; *argv && n < WORDS_MAX - 1; argv++)
		words[n++] = *argv;
	words[n] = NULL;
	return !*argv;
}

static int tell(const struct count *c, int code)
{
	int status = PROBE_FAILED, ranks = 0;

	for (size_t i = 0; i < KINDS; i++) {
		if (!c->of[i])
			continue;
		printf("%-12s %s (%d of %d ranks)\n", "has spoken",
		       kinds[i].text, c->of[i], RANKS);
		ranks += c->of[i];
		status = kinds[i].status;
	}
	if (code) {
		printf("%-12s with exit code %d\n", "ended", code);
		return PROBE_FAILED;
	}
	return ranks == RANKS ? status : PROBE_FAILED;
}

int probe_run(char *const argv[])
{
	char *launch = strdup(launcher()), self[PATH_MAX] = "";
	char **words = calloc(WORDS_MAX, sizeof(*words));
	struct count count = { { 0 }, false };
	int status = PROBE_FAILED;

	fflush(stdout);
	if (!launch || !words ||
	    readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
		perror("pmi2x-probe");
	else if (!make_command(words, launch, self, argv))
		fputs("pmi2x-probe: too many arguments\n", stderr);
	else
		status = tell(&count,
			      probe_process_read(words, 0, take_line, &count));
	free(words);
	free(launch);
	return status;
}
