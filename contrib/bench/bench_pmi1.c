/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI functions that pmi2x bench collectives needs, as MPICH and Intel MPI carry them in
 * themselves: PMI-1 in lines of text over PMI_FD.
 */
#include "bench_pmi.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX 2048 /* a key and a value, with what is around them */
#define NAME_MAX 256

/* A session belongs to the process; this is where it keeps its connection. */
static struct {
	int fd;
	char kvsname[NAME_MAX];
} session = { .fd = -1 };

static int environment_number(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : -1;
}

static bool send_line(const char *line, size_t len)
{
	while (len > 0) {
		ssize_t n = write(session.fd, line, len);

		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			line += n;
			len -= n;
		}
	}
	return true;
}

/* A request has one answer, so nothing can follow its line. */
static bool receive_line(char line[LINE_MAX])
{
	size_t have = 0;

	while (have == 0 || line[have - 1] != '\n') {
		ssize_t n = have < LINE_MAX - 1 ?
			read(session.fd, line + have, LINE_MAX - 1 - have) : 0;

		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		have += n > 0 ? n : 0;
	}
	line[have - 1] = '\0';
	return true;
}

static int read_answer(char line[LINE_MAX], const char *answer)
{
	char want[64];

	if (!receive_line(line))
		return PMI2_FAIL;
	snprintf(want, sizeof(want), "cmd=%s", answer);
	return strncmp(line, want, strlen(want)) == 0 ? PMI2_SUCCESS :
							PMI2_FAIL;
}

/* Send a request; its answer, which must be of that name, is left in line. */
__attribute__((format(printf, 3, 4)))
static int ask(char line[LINE_MAX], const char *answer, const char *format, ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(line, LINE_MAX, format, args);
	va_end(args);
	if (len >= LINE_MAX || !send_line(line, len))
		return PMI2_FAIL;
	return read_answer(line, answer);
}

/* The text after " name=" up to the next blank; NULL when there is none. */
static const char *field(const char *line, const char *name, int *len)
{
	char mark[32];
	const char *at;

	snprintf(mark, sizeof(mark), " %s=", name);
	at = strstr(line, mark);
	if (!at)
		return NULL;
	at += strlen(mark);
	*len = strcspn(at, " ");
	return at;
}

static bool went_well(const char *line)
{
	int len;
	const char *rc = field(line, "rc", &len);

	return !rc || strncmp(rc, "0", len) == 0;
}

static int init(int *spawned, int *size, int *rank, int *appnum)
{
	char line[LINE_MAX];
	const char *name;
	int len;

	session.fd = environment_number("PMI_FD");
	*rank = environment_number("PMI_RANK");
	*size = environment_number("PMI_SIZE");
	*spawned = *appnum = 0;
	if (ask(line, "response_to_init",
		"cmd=init pmi_version=1 pmi_subversion=1\n") || !went_well(line))
		return PMI2_ERR_INIT;
	if (ask(line, "my_kvsname", "cmd=get_my_kvsname\n"))
		return PMI2_ERR_INIT;
	name = field(line, "kvsname", &len);
	if (!name || len >= NAME_MAX)
		return PMI2_ERR_INIT;
	snprintf(session.kvsname, NAME_MAX, "%.*s", len, name);
	return PMI2_SUCCESS;
}

static int finalize(void)
{
	char line[LINE_MAX];

	return ask(line, "finalize_ack", "cmd=finalize\n");
}

static int abort_job(int flag, const char msg[])
{
	char line[] = "cmd=abort exitcode=1\n";

	(void)flag;
	(void)msg;
	send_line(line, strlen(line));
	exit(1);
}

static int put(const char key[], const char value[])
{
	char line[LINE_MAX];
	int rc = ask(line, "put_result", "cmd=put kvsname=%s key=%s value=%s\n",
		     session.kvsname, key, value);

	return rc ? rc : went_well(line) ? PMI2_SUCCESS : PMI2_FAIL;
}

static int fence(void)
{
	char line[LINE_MAX];
	int rc = ask(line, "barrier_out", "cmd=barrier_in\n");

	return rc ? rc : went_well(line) ? PMI2_SUCCESS : PMI2_FAIL;
}

static int group(const char *ranks)
{
	static const char format[] = "cmd=barrier_in group=%s:1\n";
	size_t room = strlen(ranks) + sizeof(format);
	char *request = malloc(room), line[LINE_MAX];
	bool sent = request &&
		    send_line(request, snprintf(request, room, format, ranks));
	int rc;

	free(request);
	rc = sent ? read_answer(line, "barrier_out") : PMI2_FAIL;
	return rc ? rc : went_well(line) ? PMI2_SUCCESS : PMI2_FAIL;
}

static int get(const char *jobid, int src, const char key[], char value[],
	       int maxvalue, int *vallen)
{
	char line[LINE_MAX];
	const char *found;
	int len, rc = ask(line, "get_result", "cmd=get kvsname=%s key=%s\n",
			  session.kvsname, key);

	(void)jobid;
	(void)src;
	if (rc || !went_well(line))
		return PMI2_ERR_INVALID_KEY;
	found = field(line, "value", &len);
	if (!found)
		return PMI2_FAIL;
	*vallen = snprintf(value, maxvalue, "%.*s", len, found);
	return PMI2_SUCCESS;
}

static const char *version(void)
{
	return "pmi-1";
}

void bench_pmi1(struct bench_pmi *pmi)
{
	*pmi = (struct bench_pmi){
		.init = init,
		.finalize = finalize,
		.abort = abort_job,
		.put = put,
		.fence = fence,
		.group = group,
		.get = get,
		.version = version,
	};
}
