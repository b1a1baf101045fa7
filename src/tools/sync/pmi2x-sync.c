/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-sync: barriers, keys and gathers for the tasks of a step, from a shell. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/buf.h"
#include "pmi2.h"
#include "pmi2x-build.h"
#include "pmi2x.h"

#define EXIT_NO 1        /* the key does not exist; another task was elected */
#define EXIT_USAGE 2
#define EXIT_FAILED 3    /* it cannot be done */
#define EXIT_TIMEOUT 124 /* as of timeout(1) */
#define VALUE_MAX ((size_t)8 << 20)
#define LINE_VALUE_MAX 4096 /* bytes of a value that is printed as a line */
#define READ_BYTES 65536
#define TIMEOUT_MAX 1e9 /* seconds */

static const char usage[] =
"usage: pmi2x-sync barrier [NAME]            wait for all tasks of the step\n"
"       pmi2x-sync put KEY=VALUE...          set keys\n"
"       pmi2x-sync put KEY <FILE             set a key to the bytes of a file\n"
"       pmi2x-sync get KEY                   print a value; status 1: there is none\n"
"       pmi2x-sync get --wait KEY            the same, when it exists\n"
"       pmi2x-sync wait KEY...               wait until all keys exist\n"
"       pmi2x-sync add KEY NUMBER            add to a key, and print the sum\n"
"       pmi2x-sync elect NAME                status 0 for one task, 1 for the others\n"
"       pmi2x-sync allgather VALUE           print the values of all tasks, by rank\n"
"options:\n"
"  --node         among the tasks of this node\n"
"  --timeout S    give up after S seconds with status 124, and say who is missing\n"
"  --wait         see get\n"
"  --version\n"
"  -h, --help\n";

struct command {
	PMIX_Sync *step;
	const char *verb;
	char **words; /* behind the verb */
	int nwords;
	int flags;
	int64_t timeout_ms;
};

/* ---- errors ---- */

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "pmi2x-sync: %s%s%s\n", what, *what && *why ? ": " : "", why);
	return EXIT_FAILED;
}

static int misused(const char *why)
{
	fprintf(stderr, "pmi2x-sync: %s\n%s", why, usage);
	return EXIT_USAGE;
}

/* The exit status for a code of PMIX_Sync_*; `name` is of a barrier, or empty. */
static int end_named(const struct command *c, int code, const char *name)
{
	if (code == PMI2_SUCCESS)
		return 0;
	if (code == PMI2X_ERR_TIMEOUT && *name)
		fprintf(stderr, "pmi2x-sync: %s %s: %s\n", c->verb, name,
			PMIX_Sync_error(c->step));
	else
		complain(c->verb, PMIX_Sync_error(c->step));
	return code == PMI2X_ERR_TIMEOUT ? EXIT_TIMEOUT :
	       code == PMI2_ERR_INVALID_KEY ? EXIT_NO : EXIT_FAILED;
}

static int end(const struct command *c, int code)
{
	return end_named(c, code, "");
}

/* ---- output ---- */

static bool is_line(const PMIX_Sync_value *v)
{
	const unsigned char *bytes = v->data;

	for (size_t i = 0; i < v->len; i++)
		if (bytes[i] < ' ' && bytes[i] != '\t')
			return false;
	return v->len <= LINE_VALUE_MAX;
}

static void print_bytes(const PMIX_Sync_value *v)
{
	if (v->len)
		fwrite(v->data, 1, v->len, stdout);
}

static int flushed(int rc)
{
	if (fflush(stdout) || ferror(stdout))
		return complain("standard output", strerror(errno));
	return rc;
}

/* ---- verbs ---- */

static int do_barrier(struct command *c)
{
	const char *name = c->nwords ? c->words[0] : "default";

	return end_named(c, PMIX_Sync_barrier(c->step, name, c->flags), name);
}

static int do_allgather(struct command *c)
{
	PMIX_Sync_value *values;
	int n, rc = PMIX_Sync_allgather(c->step, "default", c->words[0], strlen(c->words[0]),
					c->flags, &values, &n);

	if (rc)
		return end_named(c, rc, "default");
	for (int i = 0; i < n; i++) {
		print_bytes(&values[i]);
		putchar('\n');
	}
	free(values);
	return flushed(0);
}

/* Up to one byte more than a value may have. */
static int put_input(struct command *c)
{
	struct buf b;
	size_t n = 0;
	int rc = 0;

	buf_init(&b, VALUE_MAX + READ_BYTES);
	while (!rc && b.len <= VALUE_MAX && !(rc = buf_reserve(&b, READ_BYTES)) &&
	       (n = fread(b.data + b.len, 1, READ_BYTES, stdin)) > 0)
		b.len += n;
	if (rc || ferror(stdin))
		rc = complain("standard input", strerror(rc ? -rc : errno));
	else
		rc = end(c, PMIX_Sync_put(c->step, c->words[0], b.data, b.len, c->flags));
	buf_free(&b);
	return rc;
}

static int do_put(struct command *c)
{
	int rc = 0;

	if (c->nwords == 1 && !strchr(c->words[0], '='))
		return put_input(c);
	for (int i = 0; i < c->nwords; i++)
		if (!strchr(c->words[i], '='))
			return misused("put: several keys need KEY=VALUE each");
	for (int i = 0; i < c->nwords && !rc; i++) {
		char *value = strchr(c->words[i], '=');

		*value++ = '\0';
		rc = end(c, PMIX_Sync_put(c->step, c->words[i], value, strlen(value), c->flags));
	}
	return rc;
}

/* A line of text gets its end; other bytes are printed as they are. */
static int do_get(struct command *c)
{
	PMIX_Sync_value *value;
	int rc = PMIX_Sync_get(c->step, c->words[0], c->flags, &value);

	if (rc)
		return end(c, rc);
	print_bytes(value);
	if (is_line(value))
		putchar('\n');
	free(value);
	return flushed(0);
}

static int do_wait(struct command *c)
{
	return end(c, PMIX_Sync_wait(c->step, (const char *const *)c->words, c->nwords, c->flags));
}

static int do_add(struct command *c)
{
	int64_t number, sum;
	char *rest;
	int rc;

	errno = 0;
	number = strtoll(c->words[1], &rest, 10);
	if (errno || *rest || rest == c->words[1])
		return misused("add: NUMBER is a whole number of 64 bits");
	rc = PMIX_Sync_add(c->step, c->words[0], number, c->flags, &sum);
	if (rc)
		return end(c, rc);
	printf("%lld\n", (long long)sum);
	return flushed(0);
}

static int do_elect(struct command *c)
{
	int elected, rc = PMIX_Sync_elect(c->step, c->words[0], c->flags, &elected);

	return rc ? end(c, rc) : elected ? 0 : EXIT_NO;
}

static const struct {
	const char *name;
	int least, most; /* words */
	int (*run)(struct command *c);
} verbs[] = {
	{ "barrier", 0, 1, do_barrier },
	{ "put", 1, INT32_MAX, do_put },
	{ "get", 1, 1, do_get },
	{ "wait", 1, INT32_MAX, do_wait },
	{ "add", 2, 2, do_add },
	{ "elect", 1, 1, do_elect },
	{ "allgather", 1, 1, do_allgather },
};

/* ---- the command line ---- */

enum { OPTION_NODE = 256, OPTION_TIMEOUT, OPTION_WAIT, OPTION_VERSION };

static const struct option options[] = {
	{ "node", no_argument, NULL, OPTION_NODE },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "wait", no_argument, NULL, OPTION_WAIT },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static bool parse_timeout(struct command *c, const char *text)
{
	char *end;

	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0 && seconds <= TIMEOUT_MAX))
		return false;
	c->timeout_ms = (int64_t)(seconds * 1000);
	return true;
}

/* An exit status, or -1: go on. */
static int parse_option(struct command *c, int option)
{
	switch (option) {
	case OPTION_NODE: c->flags |= PMI2X_SYNC_NODE; return -1;
	case OPTION_WAIT: c->flags |= PMI2X_SYNC_WAIT; return -1;
	case OPTION_TIMEOUT:
		return parse_timeout(c, optarg) ? -1 :
			misused("--timeout needs a number of seconds");
	case OPTION_VERSION: puts("pmi2x-sync " PMI2X_BUILD); return flushed(0);
	case 'h': fputs(usage, stdout); return flushed(0);
	default: return misused("unknown option");
	}
}

static int run(struct command *c)
{
	size_t i = 0, n = sizeof(verbs) / sizeof(*verbs);
	int rc;

	while (i < n && strcmp(verbs[i].name, c->verb))
		i++;
	if (i == n)
		return misused("unknown verb");
	if (c->nwords < verbs[i].least || c->nwords > verbs[i].most)
		return misused("wrong number of arguments");
	if (PMIX_Sync_open(&c->step)) {
		rc = complain("", PMIX_Sync_error(c->step));
	} else {
		PMIX_Sync_timeout(c->step, c->timeout_ms);
		rc = verbs[i].run(c);
	}
	PMIX_Sync_close(c->step);
	return rc;
}

int main(int argc, char **argv)
{
	struct command c = { .timeout_ms = -1 };
	int option, rc = -1;

	opterr = 0;
	while (rc < 0 && (option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		rc = parse_option(&c, option);
	if (rc >= 0)
		return rc;
	if (optind == argc)
		return misused("a verb is missing");
	c.verb = argv[optind];
	c.words = argv + optind + 1;
	c.nwords = argc - optind - 1;
	return run(&c);
}
