/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of a whole step - agents, srun's end and ranks with the client library - over a
 * simulated kernel, one for each seed. The first line of a failure replays it.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "testsuite/dst/files.h"
#include "testsuite/dst/sockets.h"
#include "testsuite/dst/step.h"

#define LIMIT (3600 * SEC)  /* of simulated time: a call that has not ended hangs */
#define REAL_SECONDS 60     /* one seed takes some ms */
#define PROGRESS_SECONDS 10

struct options {
	uint64_t first;
	uint64_t count;
	double seconds;      /* real ones; then no more seeds are begun */
	enum fault fault;    /* FAULTS: as drawn */
	bool verbose;
	bool twice;
	bool quiet;
	bool broken;         /* the kernel loses bytes; runs have to fail */
};

static uint64_t seed_under_way;

static void usage(FILE *to)
{
	fprintf(to,
		"usage: simulate [OPTION]...\n\n"
		"  --seed N      the first seed (default: 1)\n"
		"  --count N     how many (default: 1)\n"
		"  --seconds S   begin no more after so many seconds, which is a failure\n"
		"  --fault NAME  this one in each run, instead of what is drawn\n"
		"  --twice       each twice, to see that both are the same\n"
		"  --quiet       no progress\n"
		"  --break       the network loses bytes: a run has to fail\n"
		"  --verbose     all that happens\n");
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "seed", 1, NULL, 's' }, { "count", 1, NULL, 'n' },
		{ "seconds", 1, NULL, 't' }, { "fault", 1, NULL, 'f' },
		{ "twice", 0, NULL, '2' }, { "quiet", 0, NULL, 'q' },
		{ "verbose", 0, NULL, 'v' }, { "help", 0, NULL, 'h' },
		{ "break", 0, NULL, 'b' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*o = (struct options){ .first = 1, .count = 1, .fault = FAULTS };
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 's': o->first = strtoull(optarg, NULL, 0); break;
		case 'n': o->count = strtoull(optarg, NULL, 0); break;
		case 't': o->seconds = atof(optarg); break;
		case 'f': o->fault = fault_named(optarg); break;
		case '2': o->twice = true; break;
		case 'q': o->quiet = true; break;
		case 'v': o->verbose = true; break;
		case 'b': o->broken = true; break;
		case 'h': usage(stdout); exit(0);
		default: return false;
		}
		if (c == 'f' && o->fault == FAULTS)
			return false;
	}
	return optind == argc;
}

/* ---- one seed ---- */

static void check_end(bool ended)
{
	if (!ended && !has_failed()) {
		failed("these have not ended:");
		world_explain();
	}
	if (has_failed())
		return;
	if (files_open() || network_left())
		failed("%u descriptors and %u sockets are left", files_open(),
		       network_left());
}

static uint64_t run_seed(uint64_t seed, const struct options *o)
{
	struct plan plan = { .fault = o->fault };
	struct step step;
	uint64_t hash;

	seed_under_way = seed;
	alarm(REAL_SECONDS);
	world_begin(seed, o->verbose);
	files_begin();
	network_begin();
	plan_draw(&plan, seed);
	network.loses = o->broken;
	if (o->verbose)
		plan_describe(&plan);
	step_begin(&step, &plan);
	check_end(world_run(now() + LIMIT));
	hash = trace_hash();
	world_end();
	step_end(&step);
	return hash;
}

/* True: it has passed. */
static bool try_seed(uint64_t seed, const struct options *o)
{
	uint64_t hash = run_seed(seed, o);

	if (has_failed())
		return false;
	if (o->twice && run_seed(seed, o) != hash) {
		failed("the second run differs from the first");
		return false;
	}
	return true;
}

/* ---- all of them ---- */

/* The last words when the product crashes or spins. */
static void on_signal(int number)
{
	printf("testsuite/dst/simulate --seed %llu%s # %s\n",
	       (unsigned long long)seed_under_way, replay_options,
	       number == SIGALRM ? "spins" : strsignal(number));
	fflush(stdout);
	_exit(1);
}

static void catch_signals(void)
{
	static char stack[65536];
	const stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_ONSTACK };
	const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM };

	sigaltstack(&own, NULL);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaction(numbers[i], &action, NULL);
}

static double seconds_since(const struct timeval *begin)
{
	struct timeval t;

	gettimeofday(&t, NULL);
	return t.tv_sec - begin->tv_sec + (t.tv_usec - begin->tv_usec) / 1e6;
}

static void progress(uint64_t done, double seconds, const char *end)
{
	printf("%llu seeds in %.0f s, %.0f a second%s",
	       (unsigned long long)done, seconds, done / seconds, end);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct options o;
	struct timeval begin;
	double shown = 0, t = 0;
	uint64_t done = 0;

	if (!parse(argc, argv, &o)) {
		usage(stderr);
		return 2;
	}
	if (sodium_init() < 0)
		return 2;
	if (o.fault != FAULTS)
		snprintf(replay_options, sizeof(replay_options), " --fault %s",
			 fault_name(o.fault));
	if (o.broken)
		strcat(replay_options, " --break");
	catch_signals();
	gettimeofday(&begin, NULL);
	while (done < o.count && (!o.seconds || t < o.seconds)) {
		if (!try_seed(o.first + done, &o))
			return o.broken ? 0 : 1;
		done++;
		t = seconds_since(&begin);
		if (!o.quiet && t - shown > PROGRESS_SECONDS) {
			shown = t;
			progress(done, t, "\n");
		}
	}
	alarm(0);
	progress(done, t > 0 ? t : 1e-6, ": all passed\n");
	if (done < o.count)
		printf("%llu more would have taken longer than %.0f s\n",
		       (unsigned long long)(o.count - done), o.seconds);
	return o.broken || done < o.count;
}
