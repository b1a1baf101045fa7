/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of one measurement of the look-up study; see lookup.h. */
#include "lookup.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "number.h"
#include "pmi2x-build.h"

static const struct lookup_way *const ways[] = {
	&lookup_rwlock, &lookup_2n, &lookup_none, &lookup_pmi2x,
};

static void usage(FILE *to)
{
	fputs("usage: lookup [-m rwlock|2n|none|pmi2x] [-r READERS] [-k KEYS]\n"
	      "              [-b BYTES] [-w UPDATES] [-t MS]\n\n"
	      "Times look-ups in one key-value image by READERS processes while\n"
	      "one process updates it, and checks every value. Prints the CPU\n"
	      "time and the time by the clock of one look-up, means over all.\n"
	      "pmi2x bench lookup runs whole studies.\n\n"
	      "  -m METHOD   how writer and readers are kept apart (pmi2x)\n"
	      "  -r READERS  reading processes (1)\n"
	      "  -k KEYS     in the image (4096)\n"
	      "  -b BYTES    of a value, a multiple of 8 (64)\n"
	      "  -w UPDATES  a second, of one value each (0)\n"
	      "  -t MS       measured time (100)\n"
	      "  -h, --help, -V, --version\n", to);
}

static bool parse_way(const char *text, const struct lookup_way **way)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (strcmp(text, ways[i]->name) == 0) {
			*way = ways[i];
			return true;
		}
	}
	fprintf(stderr, "lookup: unknown method '%s'\n", text);
	return false;
}

static bool parse_bytes(const char *text, uint32_t *bytes)
{
	if (!number_parse(text, LOOKUP_BYTES_MIN, LOOKUP_BYTES_MAX, bytes))
		return false;
	if (*bytes % LOOKUP_BYTES_MIN == 0)
		return true;
	fprintf(stderr, "lookup: '%s' bytes are not a multiple of %u\n", text,
		LOOKUP_BYTES_MIN);
	return false;
}

static bool parse_option(struct lookup_options *o, int c, const char *text)
{
	switch (c) {
	case 'm':
		return parse_way(text, &o->way);
	case 'r':
		return number_parse(text, 1, LOOKUP_READERS_MAX, &o->readers);
	case 'k':
		return number_parse(text, 1, LOOKUP_KEYS_MAX, &o->keys);
	case 'b':
		return parse_bytes(text, &o->bytes);
	case 'w':
		return number_parse(text, 0, LOOKUP_RATE_MAX, &o->rate);
	case 't':
		return number_parse(text, 1, LOOKUP_MS_MAX, &o->ms);
	}
	return false;
}

/* Whether to go on; otherwise *status is the exit status. */
static bool parse(struct lookup_options *o, int argc, char **argv, int *status)
{
	static const struct option names[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	*status = 2;
	while ((c = getopt_long(argc, argv, "m:r:k:b:w:t:hV", names, NULL)) !=
	       -1) {
		if (c == 'h' || c == 'V') {
			*status = 0;
			if (c == 'h')
				usage(stdout);
			else
				puts("lookup (pmi2x) " PMI2X_BUILD);
			return false;
		}
		if (!parse_option(o, c, optarg)) {
			if (c == '?')
				usage(stderr);
			return false;
		}
	}
	if (optind < argc)
		usage(stderr);
	return optind == argc;
}

static const char *reason(int rc)
{
	switch (rc) {
	case -EILSEQ:
		return "a reader got a wrong value";
	case -ENOENT:
		return "a reader did not find a key";
	case -ECHILD:
		return "a reader died";
	case -ENOSPC:
		return "the region is full: fewer updates (-w), or a shorter time (-t)";
	}
	return strerror(-rc);
}

int main(int argc, char **argv)
{
	struct lookup_options o = {
		.way = &lookup_pmi2x,
		.readers = 1,
		.keys = 4096,
		.bytes = 64,
		.ms = 100,
	};
	struct lookup_result r;
	int status, rc;

	if (!parse(&o, argc, argv, &status))
		return status;
	rc = lookup_run(&o, &r);
	if (rc) {
		fprintf(stderr, "lookup: %s\n", reason(rc));
		return 1;
	}
	printf("result method=%s readers=%u keys=%u bytes=%u rate=%u lookups=%llu cpu_ns=%.1f wall_ns=%.1f torn=%llu updates=%llu update_us=%.1f\n",
	       o.way->name, o.readers, o.keys, o.bytes, o.rate,
	       (unsigned long long)r.lookups, r.cpu_ns, r.wall_ns,
	       (unsigned long long)r.torn, (unsigned long long)r.updates,
	       r.update_us);
	return 0;
}
