/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-sync: barriers, keys and gathers for the tasks of a step, from a shell. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libstore/request.h"
#include "pmi2x-build.h"
#include "sync/sync_client.h"

#define EXIT_NO 1        /* the key does not exist; another task was elected */
#define EXIT_USAGE 2
#define EXIT_FAILED 3    /* it cannot be done */
#define EXIT_TIMEOUT 124 /* as of timeout(1) */
#define LINE_VALUE_MAX 4096 /* bytes of a value that is printed as a line */
#define READ_BYTES 65536
#define ELECT "elect\001" /* before the name: no key of a user */
#define TIMEOUT_MAX 1e9

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
	struct sync_client client;
	const char *verb;
	char **words; /* behind the verb */
	int nwords;
	bool node, wait;
	double timeout; /* seconds; negative: none */
	int64_t until;
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

static int broken(const char *verb, int rc)
{
	return complain(verb, rc == -EPIPE ?
			"lost the agent of this node: the step is ending" : strerror(-rc));
}

/* ---- asking ---- */

static struct store_bytes bytes_of(const char *text)
{
	return (struct store_bytes){ text, strlen(text) };
}

static struct store_request request(const struct command *c, enum store_op op,
				    const struct store_bytes *keys, uint32_t n)
{
	return (struct store_request){
		.op = op, .local = c->node, .keys = keys, .nkeys = n,
	};
}

/* An exit status; 0: the answer is to be freed. -ETIMEDOUT: there is none yet. */
static int ask(struct command *c, const struct store_request *rq, struct store_msg *answer)
{
	const char *why = request_check(rq);
	int rc;

	if (why)
		return complain(c->verb, why);
	rc = sync_ask(&c->client, rq, c->until, answer);
	if (rc)
		return rc == -ETIMEDOUT ? rc : broken(c->verb, rc);
	if (!answer->answer.status)
		return 0;
	rc = complain(c->verb, answer->text);
	sync_free(answer);
	return rc;
}

/* Ask in a moment; what comes is for a message only. */
static bool ask_more(struct command *c, const struct store_request *rq, struct store_msg *answer)
{
	c->until = sync_now() + 1000;
	return !sync_ask(&c->client, rq, c->until, answer);
}

static int late(const struct command *c, const char *name, const char *missing)
{
	fprintf(stderr, "pmi2x-sync: %s%s%s: timed out after %g s%s%s\n", c->verb,
		*name ? " " : "", name, c->timeout, *missing ? ": missing: " : "", missing);
	return EXIT_TIMEOUT;
}

static int late_meeting(struct command *c, const char *name, bool gather)
{
	const struct store_bytes key = bytes_of(name);
	struct store_request rq = request(c, STORE_MISSING, &key, 1);
	struct store_msg answer;
	int rc;

	rq.gather = gather;
	if (!ask_more(c, &rq, &answer))
		return late(c, name, "");
	rc = late(c, name, answer.text);
	sync_free(&answer);
	return rc;
}

static int late_keys(struct command *c, const struct store_bytes *keys, uint32_t n)
{
	char missing[STORE_TEXT_MAX] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct store_request rq = request(c, STORE_CHECK, &keys[i], 1);
		struct store_msg answer;
		bool exists = true;

		if (ask_more(c, &rq, &answer)) {
			exists = answer.answer.number;
			sync_free(&answer);
		}
		if (!exists && used < sizeof(missing))
			used += (size_t)snprintf(missing + used, sizeof(missing) - used,
						 "%s%s", used ? ", " : "key ",
						 (const char *)keys[i].data);
	}
	return late(c, "", missing);
}

/* ---- output ---- */

static bool is_line(const struct payload *p)
{
	for (size_t i = 0; i < p->len; i++)
		if (p->data[i] < ' ' && p->data[i] != '\t')
			return false;
	return p->len <= LINE_VALUE_MAX;
}

/* A line of text gets its end; other bytes are printed as they are. */
static int print_value(const struct payload *p)
{
	if (p->len)
		fwrite(p->data, 1, p->len, stdout);
	if (is_line(p))
		putchar('\n');
	return 0;
}

static int flushed(int rc)
{
	if (fflush(stdout) || ferror(stdout))
		return complain("standard output", strerror(errno));
	return rc;
}

/* ---- verbs ---- */

static int meet(struct command *c, const char *name, const char *value)
{
	const struct store_bytes key = bytes_of(name);
	struct store_request rq = request(c, STORE_MEET, &key, 1);
	struct store_msg answer;
	int rc;

	rq.gather = value != NULL;
	if (value)
		rq.value = bytes_of(value);
	rc = ask(c, &rq, &answer);
	if (rc == -ETIMEDOUT)
		return late_meeting(c, name, value != NULL);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < answer.answer.nvalues; i++) {
		const struct payload *p = answer.answer.values[i];

		if (p && p->len)
			fwrite(p->data, 1, p->len, stdout);
		putchar('\n');
	}
	sync_free(&answer);
	return flushed(0);
}

static int do_barrier(struct command *c)
{
	return meet(c, c->nwords ? c->words[0] : "default", NULL);
}

static int do_allgather(struct command *c)
{
	return meet(c, "default", c->words[0]);
}

static int simple(struct command *c, const struct store_request *rq, struct store_msg *answer)
{
	int rc = ask(c, rq, answer);

	return rc == -ETIMEDOUT ? late(c, "", "") : rc;
}

static int put(struct command *c, struct store_bytes key, struct store_bytes value)
{
	struct store_request rq = request(c, STORE_SET, &key, 1);
	struct store_msg answer;
	int rc;

	rq.value = value;
	rc = simple(c, &rq, &answer);
	if (!rc)
		sync_free(&answer);
	return rc;
}

/* Up to one byte more than a value may have. */
static int put_input(struct command *c)
{
	struct buf b;
	size_t n = 0;
	int rc = 0;

	buf_init(&b, STORE_VALUE_MAX + READ_BYTES);
	while (!rc && b.len <= STORE_VALUE_MAX && !(rc = buf_reserve(&b, READ_BYTES)) &&
	       (n = fread(b.data + b.len, 1, READ_BYTES, stdin)) > 0)
		b.len += n;
	if (rc || ferror(stdin))
		rc = complain("standard input", strerror(rc ? -rc : errno));
	else
		rc = put(c, bytes_of(c->words[0]), (struct store_bytes){ b.data, b.len });
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
		const char *equals = strchr(c->words[i], '=');

		rc = put(c, (struct store_bytes){ c->words[i], (size_t)(equals - c->words[i]) },
			 bytes_of(equals + 1));
	}
	return rc;
}

static int do_get(struct command *c)
{
	const struct store_bytes key = bytes_of(c->words[0]);
	const struct store_request rq = request(c, c->wait ? STORE_FETCH : STORE_GET, &key, 1);
	struct store_msg answer;
	int rc = ask(c, &rq, &answer);

	if (rc == -ETIMEDOUT)
		return late_keys(c, &key, 1);
	if (rc)
		return rc;
	if (!answer.answer.nvalues || !answer.answer.values[0]) {
		fprintf(stderr, "pmi2x-sync: get: key %s does not exist\n", c->words[0]);
		rc = EXIT_NO;
	} else {
		rc = flushed(print_value(answer.answer.values[0]));
	}
	sync_free(&answer);
	return rc;
}

static int do_wait(struct command *c)
{
	struct store_bytes *keys = calloc((size_t)c->nwords, sizeof(*keys));
	struct store_request rq = request(c, STORE_WAIT, keys, (uint32_t)c->nwords);
	struct store_msg answer;
	int rc;

	if (!keys)
		return complain("wait", strerror(ENOMEM));
	for (int i = 0; i < c->nwords; i++)
		keys[i] = bytes_of(c->words[i]);
	rc = ask(c, &rq, &answer);
	if (rc == -ETIMEDOUT)
		rc = late_keys(c, keys, (uint32_t)c->nwords);
	else if (!rc)
		sync_free(&answer);
	free(keys);
	return rc;
}

static int do_add(struct command *c)
{
	const struct store_bytes key = bytes_of(c->words[0]);
	struct store_request rq = request(c, STORE_ADD, &key, 1);
	struct store_msg answer;
	char *end;
	int rc;

	errno = 0;
	rq.number = strtoll(c->words[1], &end, 10);
	if (errno || *end || end == c->words[1])
		return misused("add: NUMBER is a whole number of 64 bits");
	rc = simple(c, &rq, &answer);
	if (rc)
		return rc;
	printf("%lld\n", (long long)answer.answer.number);
	sync_free(&answer);
	return flushed(0);
}

/* The first task leaves its rank. It is elected, however often it asks. */
static int do_elect(struct command *c)
{
	char name[STORE_KEY_MAX + 1], mine[16];
	const struct store_bytes key = { name, (size_t)snprintf(name, sizeof(name), ELECT "%s",
								 c->words[0]) };
	struct store_request rq = request(c, STORE_COMPARE_SET, &key, 1);
	const struct payload *winner;
	struct store_msg answer;
	int rc;

	snprintf(mine, sizeof(mine), "%u", c->client.rank);
	rq.value = bytes_of(mine);
	rc = simple(c, &rq, &answer);
	if (rc)
		return rc;
	winner = answer.answer.nvalues ? answer.answer.values[0] : NULL;
	rc = winner && winner->len == strlen(mine) && !memcmp(winner->data, mine, winner->len) ?
		     0 : EXIT_NO;
	sync_free(&answer);
	return rc;
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

	c->timeout = strtod(text, &end);
	return end != text && !*end && c->timeout >= 0 && c->timeout <= TIMEOUT_MAX;
}

/* An exit status, or -1: go on. */
static int parse_option(struct command *c, int option)
{
	switch (option) {
	case OPTION_NODE: c->node = true; return -1;
	case OPTION_WAIT: c->wait = true; return -1;
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
	char why[STORE_TEXT_MAX];
	size_t i = 0, n = sizeof(verbs) / sizeof(*verbs);
	int rc;

	while (i < n && strcmp(verbs[i].name, c->verb))
		i++;
	if (i == n)
		return misused("unknown verb");
	if (c->nwords < verbs[i].least || c->nwords > verbs[i].most)
		return misused("wrong number of arguments");
	if (sync_connect(&c->client, why))
		return complain(why, "");
	c->until = c->timeout < 0 ? SYNC_FOREVER : sync_now() + (int64_t)(c->timeout * 1000);
	rc = verbs[i].run(c);
	sync_close(&c->client);
	return rc;
}

int main(int argc, char **argv)
{
	struct command c = { .timeout = -1 };
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
