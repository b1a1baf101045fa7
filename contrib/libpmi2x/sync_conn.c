/* SPDX-License-Identifier: BSD-3-Clause */
/* Speaks with the agent of the node: libstore/store_msg.h over its socket. */
#include "config.h" /* _GNU_SOURCE */
#include "sync_conn.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libio/clock.h"
#include "libutil/decimal.h"

#define OVERFLOW_UID 65534 /* how users of outside are seen in a user namespace */
#define HELLO_MS 60000     /* the agent may have to be started */

int64_t sync_conn_now(void)
{
	return (int64_t)clock_ms(CLOCK_MONOTONIC);
}

/* ---- bytes ---- */

/* False: the time has come. */
static bool wait_readable(int fd, int64_t until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int n;

	do {
		int64_t left = until == SYNC_CONN_FOREVER ? -1 : until - sync_conn_now();

		if (until != SYNC_CONN_FOREVER && left < 0)
			left = 0;
		n = poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left);
		if (!n && until != SYNC_CONN_FOREVER && sync_conn_now() < until)
			n = -1; /* of a long time, a part */
	} while (n < 0);
	return n > 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -EPIPE;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_all(int fd, void *to, size_t len)
{
	char *at = to;

	while (len) {
		ssize_t n = recv(fd, at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EPIPE;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* ---- messages ---- */

static int send_message(int fd, const struct store_msg *m)
{
	struct buf b;
	int rc;

	buf_init(&b, STORE_REQUEST_MAX + STORE_MSG_LENGTH);
	rc = store_msg_pack_client(&b, m);
	rc = rc ? rc : write_all(fd, b.data, b.len);
	buf_free(&b);
	return rc;
}

/* Once a message begins to come the rest is waited for. */
static int read_message(int fd, struct store_msg *m)
{
	unsigned char length[STORE_MSG_LENGTH];
	struct payload *p;
	uint32_t size;
	int rc = read_all(fd, length, sizeof(length));

	if (rc)
		return rc;
	size = store_msg_length(length);
	if (size > STORE_MSG_MAX)
		return -EPROTO;
	p = payload_new(size);
	if (!p)
		return -ENOMEM;
	rc = read_all(fd, p->data, size);
	rc = rc ? rc : store_msg_unpack(m, p); /* its values refer to the bytes */
	payload_unref(p);
	return rc;
}

void sync_conn_free(struct store_msg *answer)
{
	store_msg_free(answer);
}

int sync_conn_receive(struct sync_conn *c, int64_t until, struct store_msg *answer)
{
	for (;;) {
		int rc = wait_readable(c->fd, until) ? read_message(c->fd, answer) :
						       -ETIMEDOUT;

		if (rc || answer->type == STORE_MSG_ANSWER)
			return rc;
		sync_conn_free(answer);
	}
}

/* Answers to requests that have been given up are passed over. */
static int read_answer(struct sync_conn *c, uint64_t number, int64_t until,
		       struct store_msg *answer)
{
	int rc;

	while (!(rc = sync_conn_receive(c, until, answer)) && answer->number != number)
		sync_conn_free(answer);
	return rc;
}

int sync_conn_send(struct sync_conn *c, const struct store_request *rq)
{
	const struct store_msg m = {
		.type = STORE_MSG_ASK, .number = ++c->last, .space = STORE_SYNC, .rq = *rq,
	};

	return send_message(c->fd, &m);
}

int sync_conn_cancel(struct sync_conn *c, uint64_t number)
{
	const struct store_msg m = { .type = STORE_MSG_CANCEL, .number = number };

	return send_message(c->fd, &m);
}

int sync_conn_ask(struct sync_conn *c, const struct store_request *rq, int64_t until,
		  struct store_msg *answer)
{
	int rc = sync_conn_send(c, rq);

	return rc ? rc : read_answer(c, c->last, until, answer);
}

/* ---- connecting ---- */

#define NOT_IN_A_STEP \
	"this process is not in a step of pmi2x: start it with srun --mpi=pmi2x"

/* Compares the first `len` bytes; a variable that Slurm has not set is no difference. */
static bool differs(const char *text, size_t len, const char *variable)
{
	const char *mine = getenv(variable);

	return mine && (strlen(mine) != len || strncmp(text, mine, len));
}

/*
 * A step that a task has started without pmi2x inherits the variable, and so does a job that a
 * task has submitted. All parts of a heterogeneous job have the name of the first.
 */
static bool is_of_another_step(const char *step)
{
	const char *point = strrchr(step, '.');

	return !point || differs(point + 1, strlen(point + 1), "SLURM_STEP_ID") ||
	       (!getenv("SLURM_HET_SIZE") &&
		differs(step, (size_t)(point - step), "SLURM_JOB_ID"));
}

/* NAME:RANK:JOB.STEP */
static bool parse(const char *text, struct sockaddr_un *to, socklen_t *len, uint32_t *rank)
{
	const char *end = text ? strchr(text, ':') : NULL, *digits = end ? end + 1 : NULL;
	uint64_t number;

	if (!end || end == text || (size_t)(end - text) > sizeof(to->sun_path) - 1 ||
	    !decimal_take(&digits, UINT32_MAX, &number) || *digits != ':' ||
	    is_of_another_step(digits + 1))
		return false;
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(to->sun_path + 1, text, (size_t)(end - text));
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)(end - text));
	*rank = (uint32_t)number;
	return true;
}

/* The process that listens made the socket as root, or is this user's. */
static bool is_trusted(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	       (peer.uid == 0 || peer.uid == geteuid() || peer.uid == OVERFLOW_UID);
}

static int say_hello(struct sync_conn *c, char why[STORE_TEXT_MAX])
{
	const struct store_msg hello = {
		.type = STORE_MSG_HELLO, .version = STORE_CLIENT_VERSION, .rank = c->rank,
	};
	struct store_msg answer;
	int rc = send_message(c->fd, &hello);

	rc = rc ? rc : read_answer(c, 0, sync_conn_now() + HELLO_MS, &answer);
	if (rc) {
		snprintf(why, STORE_TEXT_MAX, "the agent of this node %s",
			 rc == -ETIMEDOUT ? "does not answer (is it stopped?)" :
					    "has closed the connection: the step is ending, or the user or the number of its clients is refused (see slurmd's log)");
		return -1;
	}
	c->ranks = (uint32_t)answer.answer.number;
	snprintf(why, STORE_TEXT_MAX, "%s", answer.text);
	rc = answer.answer.status ? -1 : 0;
	sync_conn_free(&answer);
	return rc;
}

int sync_conn_open(struct sync_conn *c, char why[STORE_TEXT_MAX])
{
	struct sockaddr_un to;
	socklen_t len;

	*c = (struct sync_conn){ .fd = -1 };
	if (!parse(getenv("PMI2X_SYNC"), &to, &len, &c->rank)) {
		snprintf(why, STORE_TEXT_MAX, "%s", NOT_IN_A_STEP);
		return -1;
	}
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, len)) {
		snprintf(why, STORE_TEXT_MAX, "cannot connect to the step on this node: %s (the step is over, or this is a container with a network of its own, or another node)",
			 strerror(errno));
	} else if (!is_trusted(c->fd)) {
		snprintf(why, STORE_TEXT_MAX,
			 "another user listens at the socket in PMI2X_SYNC: the step is over");
	} else if (!say_hello(c, why)) {
		return 0;
	}
	sync_conn_close(c);
	return -1;
}

void sync_conn_close(struct sync_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
