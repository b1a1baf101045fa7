/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of a whole DVM in virtual time, one for each seed: world.h. The first line of a
 * failure replays it.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "world.h"

#define REAL_SECONDS 10 /* a seed takes less than a ms */
#define PROGRESS_SECONDS 10

struct options {
	uint64_t first, last;
	bool verbose, quiet;
	bool twice;
	bool must_fail;  /* one of them, at least */
};

static volatile uint64_t seed_under_way;
static volatile bool crash_is_wanted; /* --must-fail */

static void usage(FILE *to)
{
	fprintf(to,
		"usage: dvm-world [OPTION]...\n\n"
		"  --seed N         this seed (default: 1)\n"
		"  --seeds FROM:TO  all of these\n"
		"  --twice          each twice, to see that both are the same\n"
		"  --must-fail      one of them has to fail\n"
		"  --quiet          no progress\n"
		"  --verbose        all that happens\n");
}

static bool take_range(struct options *o, const char *text)
{
	char *end;

	o->first = strtoull(text, &end, 0);
	if (*end != ':')
		return false;
	o->last = strtoull(end + 1, &end, 0);
	return !*end && o->first <= o->last;
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "seed", 1, NULL, 's' }, { "seeds", 1, NULL, 'r' },
		{ "must-fail", 0, NULL, 'f' }, { "twice", 0, NULL, '2' }, { "quiet", 0, NULL, 'q' },
		{ "verbose", 0, NULL, 'v' }, { "help", 0, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*o = (struct options){ .first = 1, .last = 1 };
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 's': o->first = o->last = strtoull(optarg, NULL, 0); break;
		case 'r':
			if (!take_range(o, optarg))
				return false;
			break;
		case 'f': o->must_fail = true; break;
		case '2': o->twice = true; break;
		case 'q': o->quiet = true; break;
		case 'v': o->verbose = true; break;
		case 'h': usage(stdout); exit(0);
		default: return false;
		}
	}
	return optind == argc;
}

/* The last words when a head or a node crashes or spins. */
static void on_signal(int number)
{
	printf("testsuite/dvm-world/dvm-world --seed %llu --verbose # %s\n",
	       (unsigned long long)seed_under_way,
	       number == SIGALRM ? "spins" : strsignal(number));
	fflush(stdout);
	_exit(!crash_is_wanted);
}

static void catch_signals(void)
{
	const int numbers[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM };

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		signal(numbers[i], on_signal);
}

static double seconds(void)
{
	struct timeval t;

	gettimeofday(&t, NULL);
	return t.tv_sec + t.tv_usec / 1e6;
}

/* True: it has passed. */
static bool try_seed(uint64_t seed, const struct options *o)
{
	uint64_t first, second;
	bool ok;

	seed_under_way = seed;
	alarm(REAL_SECONDS);
	ok = world_run(seed, o->verbose, &first);
	if (!ok || !o->twice)
		return ok;
	ok = world_run(seed, false, &second) && first == second;
	if (!ok)
		printf("testsuite/dvm-world/dvm-world --seed %llu --twice # the second run differs from the first\n",
		       (unsigned long long)seed);
	return ok;
}

int main(int argc, char **argv)
{
	double begin = seconds(), shown = begin, t = begin;
	struct options o;
	uint64_t seed;
	bool ok = true;

	if (!parse(argc, argv, &o)) {
		usage(stderr);
		return 2;
	}
	crash_is_wanted = o.must_fail;
	catch_signals();
	for (seed = o.first; ok && seed <= o.last; seed++) {
		ok = try_seed(seed, &o);
		t = seconds();
		if (!o.quiet && t - shown > PROGRESS_SECONDS) {
			shown = t;
			printf("%llu seeds in %.0f s\n",
			       (unsigned long long)(seed - o.first + 1), t - begin);
			fflush(stdout);
		}
	}
	if (ok)
		printf("%llu seeds in %.1f s, %.0f a second: all passed\n",
		       (unsigned long long)(seed - o.first), t - begin,
		       (double)(seed - o.first) / (t - begin + 1e-6));
	return o.must_fail ? ok : !ok;
}
