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

#include <uthash.h>

#include "agent/pmix_stream.h"
#include "helpers/pmixd/pmixd.h"
#include "libio/attach_fds.h"
#include "libio/fd.h"
#include "libio/listener.h"
#include "libio/owner.h"
#include "libpmi/pmix_msg.h"
#include "libutil/array.h"
#include "pmi2x-build.h"
#include "supervisor/child.h"
#include "supervisor/pmix_library.h"
#include "supervisor/supervisor.h"
#include "supervisor/user_dir.h"

#define PROGRAM "pmi2x-pmixd"
#define DIR_PREFIX "pmi2x-dvm-pmix-"
#define WHY_MAX 512
#define END_MS 1000 /* for the kernel to end what has been killed */

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
	struct child child;
	struct pmix_stream *stream;
	struct payload *hello; /* NULL: it has not come */
	const char *how;       /* it is killed because of that; or NULL */
	int dir;
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
	struct server *server; /* NULL: it does not run */
	struct listener *listener; /* NULL: PMIx is not offered */
	struct nspace *nspaces;
};

/* ---- its end ---- */

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
	child_hang_up(&s->child);
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
	child_kill(&s->child);
	child_wait_end(&s->child, END_MS);
	child_forget(&s->child);
	pmix_stream_close(s->stream);
	payload_unref(s->hello);
	if (s->dir >= 0)
		(void)user_dir_remove(s->dir, h->offer.dir);
	if (s->said.type == UV_UNKNOWN_HANDLE) /* it could not be started */
		free_server(s);
	else
		uv_close((uv_handle_t *)&s->said, on_closed);
}

/* With all namespaces that it has served; it is started anew when it is needed. */
static void fail(struct pmix_hub *h, const char *how, const char *more)
{
	struct nspace *n, *next;
	char why[WHY_MAX];
	uint32_t part;

	snprintf(why, sizeof(why), "the PMIx server of node %.64s %s%.300s", h->node, how,
		 more);
	end(h);
	HASH_ITER(hh, h->nspaces, n, next) {
		part = n->part;
		free_nspace(h, n);
		h->ops.lost(h->arg, part, why);
	}
}

/* ---- letting clients in ---- */

/* Its connection goes to pmi2x-pmixd. 0 or a negative errno; -EAGAIN: not yet. */
static int let_in(const struct server *s, const struct client *c)
{
	const struct host_msg m = { .type = HOST_CLIENT, .number = c->old };
	const struct passed_fds fds = { .count = 1, .fds = { c->fd } };

	return host_msg_send_with(s->child.fd, &m, &fds);
}

static void let_in_all(struct pmix_hub *h, struct nspace *n)
{
	int rc = 0;

	while (n->nclients && rc != -EAGAIN) {
		rc = let_in(h->server, &n->clients[n->nclients - 1]);
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

/* Lets in the clients of namespaces that are served. */
static void let_in_ready(struct pmix_hub *h)
{
	struct nspace *n, *next;

	HASH_ITER(hh, h->nspaces, n, next)
		if (n->ready)
			let_in_all(h, n);
	uv_poll_start(&h->server->said,
		      UV_READABLE | (any_waits(h) ? UV_WRITABLE : 0), on_said);
}

/* ---- what it says ---- */

static void on_ready(struct pmix_hub *h, const struct host_msg *m)
{
	char build[WHY_MAX];

	child_text(build, sizeof(build), m);
	if (m->number != HOST_VERSION || strcmp(build, PMI2X_BUILD))
		fail(h, "is from another build: ", build);
}

static void on_host_message(struct pmix_hub *h, const struct host_msg *m)
{
	char text[WHY_MAX];

	child_text(text, sizeof(text), m);
	switch (m->type) {
	case HOST_READY:
		on_ready(h, m);
		break;
	case HOST_LOG:
		log_line(h->log, m->number <= LOG_LEVEL_DEBUG ? m->number :
			 LOG_LEVEL_DEBUG, "%s", text);
		break;
	case HOST_KILL:
		fail(h, "cannot serve: ", text);
		break;
	case HOST_CRASHED:
		snprintf(text, sizeof(text), "%u; please report it", m->number);
		fail(h, "crashed: signal ", text);
		break;
	default:
		fail(h, "sent an invalid message", "");
	}
}

static void on_said(uv_poll_t *poll, int status, int events)
{
	const struct server *s = poll->data;
	struct pmix_hub *h = s->hub;
	char room[HOST_MSG_MAX];
	struct host_msg m;

	if (events & UV_WRITABLE)
		let_in_ready(h);
	switch (child_receive(&s->child, room, &m)) {
	case 0:
		break;
	case 1:
		on_host_message(h, &m);
		break;
	case -EPIPE:
		fail(h, s->how ? s->how :
			"has died: it was killed (by the user, or for lack of memory: see the kernel's log there)",
		     "");
		break;
	default:
		fail(h, "sent an invalid message", "");
	}
}

static struct nspace *find(const struct pmix_hub *h, uint32_t part)
{
	struct nspace *n;

	HASH_FIND(hh, h->nspaces, &part, sizeof(part), n);
	return n;
}

/* Each part hears it for itself. */
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

/* A message of a namespace that is over was on its way. */
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
	child_kill(&h->server->child);
}

/* ---- starting it ---- */

static int execute(struct pmix_hub *h, int agent, int host)
{
	int none = -1, none_old = -1, rc, file = supervisor_program_open(h->program);
	char *more[] = {
		h->offer.dir, h->library.path, (char *)h->offer.gds, "auto", "0", NULL,
	};
	int *const fds[] = { &agent, &host, &none, &none_old, &h->server->dir };
	const struct child_program p = {
		.file = file, .name = PROGRAM, .uid = getuid(), .gid = getgid(),
		.step = "pmi2x-dvm", .node = h->node, .more = more, .fds = fds,
		.nfds = sizeof(fds) / sizeof(*fds),
	};

	rc = file < 0 ? file : child_start(&h->server->child, &p);
	fd_close(&file);
	fd_close(&agent);
	fd_close(&host);
	return rc;
}

static int connect_and_execute(struct pmix_hub *h)
{
	static const struct pmix_stream_ops ops = {
		.message = on_message, .lost = on_stream_lost,
	};
	struct server *s = h->server;
	int rc, ends[2], host;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	rc = pmix_stream_open(&s->stream, loop_uv(h->loop), ends[0], NULL, &ops, h);
	rc = rc ? rc : child_connect(&s->child, &host);
	if (!rc)
		return execute(h, ends[1], host);
	close(ends[1]);
	return rc;
}

static int start(struct pmix_hub *h)
{
	struct server *s = h->server;
	int rc;

	user_dir_remove_stale(h->offer.dir, DIR_PREFIX);
	s->dir = user_dir_make(h->offer.dir, getuid(), getgid());
	if (s->dir < 0)
		return s->dir;
	rc = connect_and_execute(h);
	rc = rc ? rc : uv_poll_init(loop_uv(h->loop), &s->said, s->child.fd);
	return rc ? rc : uv_poll_start(&s->said, UV_READABLE, on_said);
}

/* Errors are reported to the parts that wait. */
static void start_once(struct pmix_hub *h)
{
	struct server *s;
	int rc = -ENOMEM;

	if (h->server)
		return;
	s = h->server = calloc(1, sizeof(*s));
	if (s) {
		s->hub = h;
		s->child = CHILD_NONE;
		s->dir = -1;
		s->said.data = s;
		rc = start(h);
	}
	if (rc)
		fail(h, "cannot be started: ", strerror(-rc));
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
	return n;
}

static int keep_client(struct nspace *n, int fd, bool old)
{
	int rc = array_grow(&n->clients, n->nclients, &n->clients_cap,
			    sizeof(*n->clients));

	if (!rc)
		n->clients[n->nclients++] = (struct client){ fd, old };
	return rc;
}

/* `fd` is taken over. 0 or a negative errno. */
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

/* libpmix reads first from one that blocks. */
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

/* ---- for parts ---- */

const struct pmix_offer *pmix_hub_offer(const struct pmix_hub *h)
{
	return &h->offer;
}

void pmix_hub_send(struct pmix_hub *h, uint32_t part, const void *head, size_t len,
		   struct payload *data)
{
	char room[PMIX_MSG_TEXT_MAX + 256];

	if (!h->server || !h->server->hello || !find(h, part) || len > sizeof(room))
		return; /* of a part without clients nobody has heard */
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

/* In shared memory where a client can find it after it has connected: with 5. */
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

/* On all addresses of the loopback device. Where the kernel does not let a user choose
   it, a client from elsewhere is closed: it has no owner here. */
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
