/* SPDX-License-Identifier: BSD-3-Clause */
/* One pmi2x-pmixd for all tasks of a node. */
#include "dvm/node/pmix_hub.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "agent/pmix_stream.h"
#include "libio/fd.h"
#include "libio/listener.h"
#include "libio/owner.h"
#include "libpmi/pmix_msg.h"
#include "libutil/array.h"
#include "pmi2x-build.h"
#include "supervisor/pmix_library.h"
#include "supervisor/pmixd_process.h"
#include "supervisor/supervisor.h"
#include "supervisor/user_dir.h"

#define PROGRAM "pmi2x-pmixd"
#define DIR_PREFIX "pmi2x-dvm-pmix-"

/* A client whose namespace is not served yet. */
struct client {
	int fd;
	bool old;
};

/* A part with clients. */
struct nspace {
	uint32_t part;
	bool ready;
	struct client *clients;
	size_t nclients, clients_cap;
	UT_hash_handle hh;
};

/* pmi2x-pmixd while it runs. */
struct server {
	struct pmix_hub *hub;
	struct pmixd_process process;
	struct pmix_stream *stream;
	struct payload *hello; /* NULL: not received yet */
	const char *how;       /* why it is killed, or NULL */
	uv_poll_t said;
};

struct pmix_hub {
	struct loop *loop;
	struct pmix_hub_ops ops;
	void *arg;
	const struct log_hook *log;
	const char *node;
	char program[PATH_MAX + 32];
	struct pmix_library library;
	struct pmix_offer offer;
	struct server *server; /* NULL: pmi2x-pmixd does not run */
	struct listener *listener; /* NULL: PMIx is not offered */
	struct nspace *nspaces;
};

/* ---- the end of pmi2x-pmixd ---- */

static void free_nspace(struct pmix_hub *h, struct nspace *n)
{
	HASH_DEL(h->nspaces, n);
	for (size_t i = 0; i < n->nclients; i++)
		fd_close(&n->clients[i].fd);
	free(n->clients);
	free(n);
}

static void free_server(struct server *s)
{
	child_hang_up(&s->process.child);
	pmix_stream_destroy(s->stream);
	free(s);
}

static void on_closed(uv_handle_t *handle)
{
	free_server(handle->data);
}

static void end(struct pmix_hub *h)
{
	struct server *s = h->server;

	h->server = NULL;
	if (!s)
		return;
	pmixd_process_kill(&s->process);
	pmix_stream_close(s->stream);
	payload_unref(s->hello);
	pmixd_process_forget(&s->process, h->offer.dir);
	if (s->said.type == UV_UNKNOWN_HANDLE) /* the process could not be started */
		free_server(s);
	else
		uv_close((uv_handle_t *)&s->said, on_closed);
}

/*
 * End pmi2x-pmixd, and fail all namespaces that it has served. The next client starts it
 * again.
 */
static void fail(struct pmix_hub *h, const char *how)
{
	struct nspace *n, *next;
	char why[PMIXD_WHY_MAX];
	uint32_t part;

	pmixd_process_why(why, sizeof(why), h->node, how);
	end(h);
	HASH_ITER(hh, h->nspaces, n, next) {
		part = n->part;
		free_nspace(h, n);
		h->ops.lost(h->arg, part, why);
	}
}

/* ---- letting clients in ---- */

static void let_in_all(struct pmix_hub *h, struct nspace *n)
{
	int rc = 0;

	while (n->nclients && rc != -EAGAIN) {
		const struct client *c = &n->clients[n->nclients - 1];

		rc = pmixd_process_let_in(&h->server->process, c->fd, c->old);
		if (rc != -EAGAIN)
			fd_close(&n->clients[--n->nclients].fd);
	}
}

static bool any_waits(const struct pmix_hub *h)
{
	for (const struct nspace *n = h->nspaces; n; n = n->hh.next)
		if (n->ready && n->nclients)
			return true;
	return false;
}

static void on_said(uv_poll_t *poll, int status, int events);

/* Let in the clients of namespaces that are served. */
static void let_in_ready(struct pmix_hub *h)
{
	struct nspace *n, *next;

	HASH_ITER(hh, h->nspaces, n, next)
		if (n->ready)
			let_in_all(h, n);
	uv_poll_start(&h->server->said,
		      UV_READABLE | (any_waits(h) ? UV_WRITABLE : 0), on_said);
}

/* ---- messages of pmi2x-pmixd ---- */

static void on_ready(struct pmix_hub *h, const struct host_msg *m)
{
	char build[256], how[PMIXD_WHY_MAX];

	child_text(build, sizeof(build), m);
	if (m->number == HOST_VERSION && !strcmp(build, PMI2X_BUILD))
		return;
	snprintf(how, sizeof(how), "is from another build: %s", build);
	fail(h, how);
}

static void on_host_message(struct pmix_hub *h, const struct host_msg *m)
{
	char text[PMIXD_WHY_MAX];

	child_text(text, sizeof(text), m);
	if (m->type == HOST_READY)
		on_ready(h, m);
	else if (m->type == HOST_LOG)
		log_line(h->log, m->number <= LOG_LEVEL_DEBUG ? m->number :
			 LOG_LEVEL_DEBUG, "%s", text);
}

static void on_said(uv_poll_t *poll, int status, int events)
{
	const struct server *s = poll->data;
	struct pmix_hub *h = s->hub;
	char room[HOST_MSG_MAX], how[PMIXD_WHY_MAX];
	struct host_msg m;

	if (events & UV_WRITABLE)
		let_in_ready(h);
	switch (pmixd_process_hear(&s->process, room, &m, how)) {
	case PMIXD_SAYS_NOTHING:
		break;
	case PMIXD_SAYS:
		on_host_message(h, &m);
		break;
	case PMIXD_HAS_DIED:
		fail(h, s->how ? s->how : how);
		break;
	case PMIXD_GIVES_UP:
	case PMIXD_HAS_FAILED:
		fail(h, how);
	}
}

static struct nspace *find(const struct pmix_hub *h, uint32_t part)
{
	struct nspace *n;

	HASH_FIND(hh, h->nspaces, &part, sizeof(part), n);
	return n;
}

/* Report the message to each part. */
static int on_hello(struct pmix_hub *h, struct payload *message)
{
	struct nspace *n, *next;
	int rc = 0;

	if (h->server->hello)
		return -EPROTO;
	h->server->hello = payload_ref(message);
	HASH_ITER(hh, h->nspaces, n, next)
		rc = rc ? rc : h->ops.message(h->arg, n->part, message);
	return rc;
}

/* The namespace is over: the message was on its way. */
static int on_message(void *arg, struct payload *message)
{
	struct pmix_hub *h = arg;
	struct pmix_msg m;
	struct nspace *n;
	int rc;

	if (pmix_msg_unpack(&m, message->data, message->len) != (int64_t)message->len)
		return -EPROTO;
	if (m.type == PMIX_MSG_HELLO)
		return on_hello(h, message);
	n = find(h, m.nspace);
	if (!n)
		return 0;
	pmix_msg_set_nspace(message->data, 0);
	n->ready |= m.type == PMIX_MSG_READY;
	rc = h->ops.message(h->arg, m.nspace, message);
	if (m.type == PMIX_MSG_READY && h->server)
		let_in_ready(h);
	return rc;
}

/* The next event tells how the process ended. */
static void on_stream_lost(void *arg, const char *how)
{
	struct pmix_hub *h = arg;

	if (strcmp(how, "died"))
		h->server->how = how;
	child_kill(&h->server->process.child);
}

/* ---- starting pmi2x-pmixd ---- */

static int execute(struct pmix_hub *h, int agent)
{
	int none = -1, old = -1, rc, file = supervisor_program_open(h->program);
	const struct child_program p = {
		.file = file, .name = PROGRAM, .uid = getuid(), .gid = getgid(),
		.step = "pmi2x-dvm", .node = h->node,
	};
	const struct pmixd_options o = {
		h->offer.dir, h->library.path, h->offer.gds, "auto", 0, NULL, true,
	};
	int *const fds[] = { &agent, &none, &old };

	rc = file < 0 ? file : pmixd_process_start(&h->server->process, &p, &o, fds);
	fd_close(&file);
	fd_close(&agent);
	return rc;
}

static int connect_and_execute(struct pmix_hub *h)
{
	static const struct pmix_stream_ops ops = {
		.message = on_message, .lost = on_stream_lost,
	};
	struct server *s = h->server;
	int rc, ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	rc = pmix_stream_open(&s->stream, loop_uv(h->loop), ends[0], NULL, &ops, h);
	if (!rc)
		return execute(h, ends[1]);
	close(ends[1]);
	return rc;
}

static int start(struct pmix_hub *h)
{
	struct server *s = h->server;
	int rc;

	user_dir_remove_stale(h->offer.dir, DIR_PREFIX);
	rc = connect_and_execute(h);
	rc = rc ? rc : uv_poll_init(loop_uv(h->loop), &s->said, s->process.child.fd);
	return rc ? rc : uv_poll_start(&s->said, UV_READABLE, on_said);
}

/* Errors are reported to the parts that wait. */
static void start_once(struct pmix_hub *h)
{
	struct server *s;
	char how[PMIXD_WHY_MAX];
	int rc = -ENOMEM;

	if (h->server)
		return;
	s = h->server = calloc(1, sizeof(*s));
	if (s) {
		s->hub = h;
		s->process = PMIXD_PROCESS_NONE;
		s->said.data = s;
		rc = start(h);
	}
	if (!rc)
		return;
	snprintf(how, sizeof(how), "cannot be started: %s", strerror(-rc));
	fail(h, how);
}

/* ---- clients ---- */

/* Any user of the machine can connect; libpmix believes whom a client says it is. */
static bool is_own(int fd)
{
	uint32_t uid;

	return !owner_of_peer(fd, &uid) && uid == getuid();
}

/* The part that a connection is for. */
static bool find_part(const struct pmix_hub *h, int fd, uint32_t *part, bool *old)
{
	struct sockaddr_in own;
	socklen_t len = sizeof(own);
	uint32_t address;

	if (getsockname(fd, (struct sockaddr *)&own, &len) ||
	    own.sin_family != AF_INET)
		return false;
	address = ntohl(own.sin_addr.s_addr);
	*old = address & 1;
	return h->ops.find(h->arg, address - *old, part);
}

static struct nspace *new_nspace(struct pmix_hub *h, uint32_t part)
{
	struct nspace *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->part = part;
	HASH_ADD(hh, h->nspaces, part, sizeof(n->part), n);
	if (n->hh.tbl)
		return n;
	free(n);
	return NULL;
}

static int keep_client(struct nspace *n, int fd, bool old)
{
	int rc = array_grow(&n->clients, n->nclients, &n->clients_cap,
			    sizeof(*n->clients));

	if (!rc)
		n->clients[n->nclients++] = (struct client){ fd, old };
	return rc;
}

/* Take a client's connection; `fd` is taken over. 0 or a negative errno. */
static int admit(struct pmix_hub *h, uint32_t part, int fd, bool old)
{
	struct nspace *n = find(h, part);
	bool is_new = !n;
	int rc;

	n = n ? n : new_nspace(h, part);
	rc = n ? keep_client(n, fd, old) : -ENOMEM;
	if (rc) {
		close(fd);
		return rc;
	}
	start_once(h);
	if (is_new && h->server && h->server->hello)
		rc = h->ops.message(h->arg, part, h->server->hello);
	if (h->server && n->ready)
		let_in_ready(h);
	return rc;
}

/* The first read of libpmix needs a socket that blocks. */
static void on_client(void *arg, int fd)
{
	struct pmix_hub *h = arg;
	uint32_t part;
	bool old;

	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	if (!is_own(fd) || !find_part(h, fd, &part, &old))
		close(fd);
	else if (admit(h, part, fd, old))
		log_error(h->log, "closed the connection of a PMIx client: out of memory");
}

/* ---- calls for parts ---- */

const struct pmix_offer *pmix_hub_offer(const struct pmix_hub *h)
{
	return &h->offer;
}

void pmix_hub_send(struct pmix_hub *h, uint32_t part, const void *head, size_t len,
		   struct payload *data)
{
	char room[PMIX_MSG_TEXT_MAX + 256];

	if (!h->server || !h->server->hello || !find(h, part) || len > sizeof(room))
		return; /* pmi2x-pmixd knows no part without clients */
	memcpy(room, head, len);
	pmix_msg_set_nspace(room, part);
	pmix_stream_send(h->server->stream, room, len, data);
}

void pmix_hub_drop(struct pmix_hub *h, uint32_t part)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_DROP, .nspace = part, .rank = PMIX_NO_RANK,
	};
	struct nspace *n = h ? find(h, part) : NULL;
	char room[256];
	struct buf b;

	if (!n)
		return;
	buf_init_in(&b, room, sizeof(room));
	if (!pmix_msg_pack(&b, &m))
		pmix_hub_send(h, part, b.data, b.len, NULL);
	free_nspace(h, n);
}

/* ---- life ---- */

/*
 * The kind of data store: in shared memory with libpmix 5, where a client can find it after
 * it has connected.
 */
static const char *gds_of(const struct pmix_library *l)
{
	return l->release == 5 ? "auto" : "hash";
}

static bool is_there(struct pmix_hub *h, const char *directory)
{
	snprintf(h->program, sizeof(h->program), "%s/" PROGRAM, directory);
	return !access(h->program, X_OK) && !pmix_library_find(&h->library, "");
}

static int name_directory(struct pmix_hub *h)
{
	const char *tmp = getenv("TMPDIR");
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	snprintf(h->offer.dir, sizeof(h->offer.dir), "%.512s/" DIR_PREFIX "%016llx",
		 tmp && *tmp == '/' ? tmp : "/tmp", (unsigned long long)number);
	return 0;
}

/*
 * Listen on all addresses of the loopback device. If the kernel does not let a user choose
 * the device, a client from elsewhere is closed: it has no owner here.
 */
static int listen_here(struct pmix_hub *h)
{
	const struct sockaddr_storage any = { .ss_family = AF_INET };
	static const char device[] = "lo";
	int fd = listener_socket(&any, 0, &h->offer.port);

	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, sizeof(device));
	return fd;
}

int pmix_hub_open(struct pmix_hub **out, struct loop *loop, const char *directory,
		  const char *node, const struct pmix_hub_ops *ops, void *arg,
		  const struct log_hook *log)
{
	struct pmix_hub *h = calloc(1, sizeof(*h));
	int rc, fd;

	*out = h;
	if (!h)
		return -ENOMEM;
	*h = (struct pmix_hub){
		.loop = loop, .ops = *ops, .arg = arg, .log = log, .node = node,
	};
	if (!is_there(h, directory))
		return 0;
	h->offer.gds = gds_of(&h->library);
	rc = name_directory(h);
	if (rc)
		return rc;
	fd = listen_here(h);
	return fd < 0 ? fd : listener_open(&h->listener, loop_uv(loop), fd, on_client, h);
}

void pmix_hub_close(struct pmix_hub *h)
{
	struct nspace *n, *next;

	if (!h || !h->listener)
		return;
	HASH_ITER(hh, h->nspaces, n, next)
		free_nspace(h, n);
	end(h);
	listener_close(h->listener);
	h->listener = NULL;
}

void pmix_hub_destroy(struct pmix_hub *h)
{
	free(h);
}
