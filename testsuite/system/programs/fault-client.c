// SPDX-License-Identifier: BSD-3-Clause
/*
 * A rank that does, with libpmi2x, what its words say, in order, and misbehaves
 * where they say so.
 *
 * usage: fault-client DIR WORD...
 *
 * "5:WORD" is for rank 5 only, "2-5:WORD" for ranks 2 to 5. Names are those of
 * files in DIR: "gate=NAME" waits for NAME, "touch=NAME" makes NAME.RANK, which
 * holds the process id. The first operation that fails is written to error.RANK,
 * and ends the rank with exit code 1; who comes to the end of its words makes
 * done.RANK.
 */
#include <errno.h>
#include <fcntl.h>
#include <pmi2.h>
#include <pmi2x.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_US 10000
#define RING_VALUE_MAX 64

static const char *dir;
static int rank, size;
static PMIX_Request request;

/* ---- files ---- */

static const char *path_of(const char *name, int number)
{
	static __thread char path[4096];

	if (number < 0)
		snprintf(path, sizeof(path), "%s/%s", dir, name);
	else
		snprintf(path, sizeof(path), "%s/%s.%d", dir, name, number);
	return path;
}

static void note(const char *name, const char *text)
{
	char temporary[4096];
	FILE *f;

	snprintf(temporary, sizeof(temporary), "%s", path_of("new", rank));
	f = fopen(temporary, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) ||
	    rename(temporary, path_of(name, rank))) {
		perror(name);
		_exit(2);
	}
}

static void wait_for_file(const char *name)
{
	while (access(path_of(name, -1), F_OK) != 0)
		usleep(POLL_US);
}

/* ---- ends ---- */

static void die(const char *how)
{
	if (strcmp(how, "term") == 0)
		kill(getpid(), SIGTERM);
	else if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGKILL);
	else if (strcmp(how, "segv") == 0)
		kill(getpid(), SIGSEGV);
	else
		_exit(atoi(how));
	for (;;)
		pause();
}

static void *die_later(void *how)
{
	wait_for_file("now");
	die(how);
	return NULL;
}

/* ---- operations: 0 or an error code of PMI ---- */

static int do_init(const char *arg)
{
	int spawned, appnum;

	return PMI2_Init(&spawned, &size, &rank, &appnum);
}

static int do_fence(const char *arg)
{
	return PMI2_KVS_Fence();
}

static int do_ring(const char *arg)
{
	char left[RING_VALUE_MAX], right[RING_VALUE_MAX];
	int ring_rank, ring_size;

	return PMIX_Ring("value", &ring_rank, &ring_size, left, right,
			 sizeof(left));
}

static int do_allgather(const char *arg)
{
	void *buffer = calloc(size, PMI2X_MAXLENGTH);
	int rc = PMIX_Allgather("value", buffer);

	free(buffer);
	return rc;
}

/* Over and over, until the first rank has found a file. */
static int do_until(const char *arg)
{
	char *found = calloc(size, PMI2X_MAXLENGTH);
	int rc;

	do {
		if (rank == 0)
			usleep(POLL_US);
		rc = PMIX_Allgather(access(path_of(arg, -1), F_OK) ? "" : "yes",
				    found);
	} while (!rc && !*found);
	free(found);
	return rc;
}

static int do_ifence(const char *arg)
{
	return PMIX_KVS_Ifence(&request);
}

static int do_wait(const char *arg)
{
	return PMIX_Wait(request);
}

/* Puts a number of values of the largest size. */
static int do_put(const char *arg)
{
	char *value = calloc(1, PMI2X_MAX_VALLEN), key[PMI2X_MAX_KEYLEN];
	int rc = 0;

	for (int i = 0; i < atoi(arg) && !rc; i++) {
		snprintf(key, sizeof(key), "key-%d-%d", rank, i);
		rc = PMIX_KVS_Put_n(key, value, PMI2X_MAX_VALLEN);
	}
	free(value);
	return rc;
}

static int do_show(const char *arg)
{
	char value[64];

	snprintf(value, sizeof(value), "%s of %d", arg, rank);
	return PMI2_KVS_Put(arg, value);
}

/* RANK,MS,KEY: prints what came of it, and goes on. */
static int do_fetch(const char *arg)
{
	char key[64] = "", text[1024] = "";
	int of = -1, ms = 0, rc;
	size_t len = sizeof(text) - 1;

	sscanf(arg, "%d,%d,%63s", &of, &ms, key);
	rc = PMIX_KVS_Fetch(of, key, text, &len, ms);
	text[rc ? 0 : len] = '\0';
	if (rc)
		PMIX_Capabilities("refusal", text, sizeof(text));
	printf("%d fetches %s: %d %s\n", rank, arg, rc, text);
	fflush(stdout);
	return 0;
}

static int do_publish(const char *arg)
{
	return PMI2_Nameserv_publish(arg, NULL, "port");
}

static int do_lookup(const char *arg)
{
	char port[PMI2_MAX_VALLEN];

	return PMI2_Nameserv_lookup(arg, NULL, port, sizeof(port));
}

static int do_spawn(const char *arg)
{
	const char *command[] = { arg }, **arguments[] = { NULL };
	int processes[] = { 1 }, infos[] = { 0 }, errors[1] = { 0 };
	char job[PMI2_MAX_VALLEN];

	return PMI2_Job_Spawn(1, command, NULL, arguments, processes, infos,
			      NULL, 0, NULL, job, sizeof(job), errors);
}

static int do_abort(const char *arg)
{
	return PMI2_Abort(1, arg);
}

static int do_finalize(const char *arg)
{
	return PMI2_Finalize();
}

static int do_gate(const char *arg)
{
	wait_for_file(arg);
	return 0;
}

static int do_touch(const char *arg)
{
	char text[32];

	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	note(arg, text);
	return 0;
}

static int do_die(const char *arg)
{
	die(arg);
	return 0;
}

/* At the file "now", in the middle of what comes next. */
static int do_later(const char *arg)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, die_later, (void *)arg);
}

static int do_stop(const char *arg)
{
	return raise(SIGSTOP);
}

/* A child that ends as programs do, with whatever the library does at exit. */
static int do_fork(const char *arg)
{
	pid_t child = fork();

	if (child == 0)
		exit(0);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

/* A file of this name takes the place of PMI_FD. */
static int do_replace(const char *arg)
{
	int fd = open(path_of(arg, rank), O_CREAT | O_RDWR, 0600);

	return dup2(fd, atoi(getenv("PMI_FD"))) < 0;
}

/* Standard error becomes a pipe that nobody reads. */
static int do_mute(const char *arg)
{
	int fds[2];

	signal(SIGPIPE, SIG_DFL);
	if (pipe(fds) || close(fds[0]) || dup2(fds[1], STDERR_FILENO) < 0)
		return -1;
	return close(fds[1]);
}

/* A lookup that may fail. */
static int do_ask(const char *arg)
{
	do_lookup(arg);
	return 0;
}

static const struct word {
	const char *name;
	int (*act)(const char *arg);
} words[] = {
	{ "init", do_init },         { "fence", do_fence },
	{ "ring", do_ring },         { "allgather", do_allgather },
	{ "ifence", do_ifence },     { "wait", do_wait },
	{ "put", do_put },           { "publish", do_publish },
	{ "lookup", do_lookup },     { "spawn", do_spawn },
	{ "abort", do_abort },       { "finalize", do_finalize },
	{ "gate", do_gate },         { "touch", do_touch },
	{ "die", do_die },           { "later", do_later },
	{ "stop", do_stop },         { "fork", do_fork },
	{ "replace", do_replace },   { "mute", do_mute },
	{ "ask", do_ask },           { "until", do_until },
	{ "show", do_show },         { "fetch", do_fetch },
};

/* ---- words ---- */

/* The rest of the word for this rank, or NULL: nothing. */
static const char *for_this_rank(const char *word)
{
	int first, last, used = 0;

	if (sscanf(word, "%d-%d:%n", &first, &last, &used) == 2 && used)
		return rank >= first && rank <= last ? word + used : NULL;
	used = 0;
	if (sscanf(word, "%d:%n", &first, &used) == 1 && used)
		return rank == first ? word + used : NULL;
	return word;
}

static void act(const char *word)
{
	size_t len = strcspn(word, "=");
	char text[256];
	int rc;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i].name) != len ||
		    strncmp(words[i].name, word, len))
			continue;
		rc = words[i].act(word[len] ? word + len + 1 : "");
		if (!rc)
			return;
		snprintf(text, sizeof(text), "%.*s %d\n", (int)len, word, rc);
		note("error", text);
		exit(1);
	}
	fprintf(stderr, "fault-client: no such word: %s\n", word);
	exit(2);
}

int main(int argc, char **argv)
{
	dir = argv[1];
	rank = atoi(getenv("PMI_RANK"));
	/* A process that this signal kills is no finding of a sanitizer. */
	signal(SIGSEGV, SIG_DFL);
	for (int i = 2; i < argc; i++) {
		const char *word = for_this_rank(argv[i]);

		if (word)
			act(word);
	}
	note("done", "");
	return 0;
}
