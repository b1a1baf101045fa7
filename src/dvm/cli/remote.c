/* SPDX-License-Identifier: BSD-3-Clause */
/* Connecting to a head on another node. */
#include "dvm/cli/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "dvm/common/bootstrap.h"
#include "libio/frames.h"
#include "libio/protocol.h"
#include "libio/tcp.h"
#include "libutil/pack.h"
#include "pmi2x-build.h"

#define ANSWER_SECONDS 5 /* of an address: to be connected, and for each message */
#define DEAD_HEAD_MS 60000
#define PIECE_MAX ((size_t)1 << 20)

/* ---- the file ---- */

/* 0, or a negative errno as of remote_connect. */
static int check_file(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077)
		return -EPERM;
	return 0;
}

static int read_file(const char *file, struct welcome *w)
{
	int rc, fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	FILE *in;

	if (fd < 0)
		return errno == ELOOP || errno == EACCES ? -EPERM : -errno;
	rc = check_file(fd);
	in = rc ? NULL : fdopen(fd, "r");
	if (!in) {
		close(fd);
		return rc ? rc : -ENOMEM;
	}
	rc = welcome_read(w, in);
	fclose(in);
	return rc;
}

/* ---- bytes ---- */

int remote_send_all(int fd, const void *data, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = send(fd, (const char *)data + done, len - done,
				 MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Bytes that have come, 0 at the end, or a negative errno. */
static ssize_t receive(int fd, void *at, size_t len)
{
	ssize_t n;

	do {
		n = recv(fd, at, len, 0);
	} while (n < 0 && errno == EINTR);
	return n >= 0 ? n : errno == EAGAIN ? -ETIMEDOUT : -errno;
}

/* ---- connecting ---- */

static int send_output(int fd, struct handshake *h)
{
	struct buf *out = handshake_output(h);
	int rc = remote_send_all(fd, out->data, out->len);

	buf_clear(out);
	return rc;
}

static int run_handshake(int fd, struct handshake *h)
{
	enum handshake_state state = HANDSHAKE_UNDER_WAY;
	int rc = send_output(fd, h);

	while (!rc && state == HANDSHAKE_UNDER_WAY) {
		void *at;
		size_t room = handshake_room(h, &at);
		ssize_t n = receive(fd, at, room);

		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		state = handshake_input(h, (size_t)n);
		rc = send_output(fd, h);
	}
	return state == HANDSHAKE_FAILED ? handshake_error(h) : rc;
}

static int prove(int fd, const struct welcome *w, const struct sockaddr_storage *to)
{
	const struct handshake_self self = {
		.secret = w->secret, .jobid = w->dvm, .build = PMI2X_BUILD,
		.position = WELCOME_CLIENT, .protocol = PROTOCOL_VERSION,
	};
	struct sockaddr_storage local = { 0 };
	socklen_t len = sizeof(local);
	struct handshake *h;
	int rc;

	if (getsockname(fd, (struct sockaddr *)&local, &len) < 0)
		return -errno;
	rc = handshake_connect(&h, &self, HANDSHAKE_SRUN, &local, to);
	if (rc)
		return rc;
	rc = run_handshake(fd, h);
	handshake_destroy(h);
	return rc;
}

static void set_timeouts(int fd, time_t seconds)
{
	const struct timeval t = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

/* A head whose node has died does not say so. */
static void set_options(int fd)
{
	set_timeouts(fd, 0);
	tcp_send_at_once(fd);
	tcp_end_without_answer(fd, DEAD_HEAD_MS);
}

static int try_address(const struct welcome *w, const struct sockaddr_storage *to)
{
	socklen_t len = to->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
						   sizeof(struct sockaddr_in6);
	int rc = 0, fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	set_timeouts(fd, ANSWER_SECONDS);
	if (connect(fd, (const struct sockaddr *)to, len) < 0)
		rc = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
	rc = rc ? rc : prove(fd, w, to);
	if (rc) {
		close(fd);
		return rc;
	}
	set_options(fd);
	return fd;
}

static int try_addresses(const struct welcome *w)
{
	int fd = -ENOTCONN;

	for (uint32_t i = 0; fd < 0 && i < w->nheads; i++)
		fd = try_address(w, &w->heads[i]);
	return fd;
}

int remote_connect(const char *file)
{
	struct welcome w;
	int rc = read_file(file, &w);

	if (!rc)
		rc = try_addresses(&w);
	secret_forget(&w.secret);
	return rc;
}

const char *remote_strerror(int error)
{
	switch (error) {
	case -EPERM:
		return "the file must be yours, and no other user may read it";
	case -EPROTO:
		return "the file is not that of a DVM, or another program answers there";
	case -EACCES:
	case -EADDRNOTAVAIL:
		return "another DVM answers there: the DVM of the file has ended";
	case -EPROTONOSUPPORT:
	case -ENOPROTOOPT:
		return "another version of pmi2x answers there: use the same version on all nodes";
	default:
		return strerror(-error);
	}
}

/* ---- frames ---- */

/* 1, 0 at the end, or a negative errno. */
static int read_header(int fd, size_t *left)
{
	uint8_t header[FRAME_HEADER_BYTES];
	struct cursor c;
	ssize_t n;

	for (size_t have = 0; have < sizeof(header); have += (size_t)n) {
		n = receive(fd, header + have, sizeof(header) - have);
		if (n <= 0)
			return (int)n;
	}
	cursor_init(&c, header, sizeof(header));
	*left = unpack_u32(&c);
	return unpack_u8(&c) == FRAME_CONTROL_DOWN;
}

ssize_t remote_receive(int fd, size_t *left, void *at, size_t size)
{
	ssize_t n = 1;

	if (!left)
		return receive(fd, at, size);
	while (!*left && n > 0)
		n = read_header(fd, left);
	if (n > 0)
		n = receive(fd, at, size < *left ? size : *left);
	*left -= n > 0 ? (size_t)n : 0;
	return n;
}

static int send_piece(int fd, const void *data, size_t len)
{
	struct payload *frame = frame_whole(FRAME_CONTROL_UP, data, len);
	int rc = frame ? remote_send_all(fd, frame->data, frame->len) : -ENOMEM;

	payload_unref(frame);
	return rc;
}

int remote_send(int fd, const void *data, size_t len)
{
	int rc = 0;

	for (size_t done = 0, n; !rc && done < len; done += n) {
		n = len - done < PIECE_MAX ? len - done : PIECE_MAX;
		rc = send_piece(fd, (const char *)data + done, n);
	}
	return rc;
}
