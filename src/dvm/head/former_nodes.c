/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes of the last head, if its daemons do not wait for another one (up without --orphan).
 * Such a daemon ends its ranks when it loses its head, and one that is cut off does so when
 * its lease is over. So tasks that ran wait for that time.
 *
 * A head writes down where its daemons listen, in a file beside its journal. The next head
 * calls these addresses: daemon and zygote hold the socket as long as they have ranks, so a
 * refused call proves that the ranks have ended. When all are refused, no task waits.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "dvm/head/head_main.h"
#include "libutil/array.h"

#define FILE_NAME "nodes"
#define EPOCH "epoch %" PRIu64 "\n" /* the first line: of the head that has written it */
#define LINE_MAX_BYTES 128
#define AGAIN_MS 500 /* between two calls of a node */
#define CALLS_MAX 64 /* at once */

struct former_node {
	struct sockaddr_storage where;
	bool called, gone;
};

struct former_call {
	struct former_nodes *f;
	struct former_node *node;
	uv_tcp_t tcp;
	uv_connect_t connect;
	struct former_call *prev, *next;
};

static void file_path(const struct head_main *h, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", h->options.journal.dir, name);
}

/* ---- writing ---- */

static void put_node(const struct head_main *h, uint32_t i, FILE *out)
{
	char ip[INET6_ADDRSTRLEN];
	struct dvm_address where;

	dvm_head_node_where(h->head, i, &where);
	inet_ntop(AF_INET6, where.ip, ip, sizeof(ip));
	fprintf(out, "node %s %u\n", ip, where.port);
}

/* NULL: no memory. */
static char *format(struct head_main *h)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, EPOCH, head_journal_epoch(h));
	for (uint32_t i = 0; i < dvm_head_registered(h->head); i++)
		put_node(h, i, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int sync_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd >= 0 && fsync(fd) == 0 ? 0 : -errno;

	if (fd >= 0)
		close(fd);
	return rc;
}

/* A file that lacks a node would be false proof. While unknown nodes may run, there is none. */
void former_publish(struct head_main *h)
{
	char path[PATH_MAX];
	int rc;

	if (!h->options.journal.dir || h->options.local || !head_journal_is_ours(h))
		return;
	file_path(h, FILE_NAME, path);
	h->noted_unheard = dvm_head_is_unheard(h->head);
	rc = h->noted_unheard ? -ENOENT : address_write(h, path, format(h));
	rc = rc ? rc : sync_directory(h->options.journal.dir);
	if (rc)
		unlink(path);
}

void former_withdraw(const struct head_main *h)
{
	char path[PATH_MAX];

	if (!h->options.journal.dir)
		return;
	file_path(h, FILE_NAME, path);
	unlink(path);
}

/* ---- reading ---- */

static int add(struct former_nodes *f, const char *line, size_t *cap)
{
	char ip[INET6_ADDRSTRLEN];
	struct dvm_address where;
	int rc;

	if (sscanf(line, "node %45s %hu", ip, &where.port) != 2 ||
	    inet_pton(AF_INET6, ip, where.ip) != 1)
		return -EPROTO;
	rc = array_grow(&f->all, f->count, cap, sizeof(*f->all));
	if (rc)
		return rc;
	f->all[f->count] = (struct former_node){ 0 };
	welcome_sockaddr(&f->all[f->count++].where, &where);
	return 0;
}

static int read_all(struct former_nodes *f, FILE *in, uint64_t epoch)
{
	char line[LINE_MAX_BYTES];
	uint64_t found;
	size_t cap = 0;
	int rc = 0;

	if (!fgets(line, sizeof(line), in) || sscanf(line, EPOCH, &found) != 1 || found != epoch)
		return -ESTALE;
	while (!rc && fgets(line, sizeof(line), in))
		rc = add(f, line, &cap);
	return rc;
}

/* Another head may have been there since, and have written nothing. */
void former_read(struct head_main *h)
{
	struct former_nodes *f = &h->former;
	char path[PATH_MAX];
	FILE *in;
	int fd;

	file_path(h, FILE_NAME, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	in = fd < 0 ? NULL : fdopen(fd, "r");
	f->known = in && !read_all(f, in, head_journal_epoch(h) - 1);
	if (in)
		fclose(in);
	else if (fd >= 0)
		close(fd);
}

/* ---- calling ---- */

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void end_call(struct former_call *c)
{
	DL_DELETE(c->f->calls, c);
	c->f->ncalls--;
	c->node->called = false;
	uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void on_connect(uv_connect_t *connect, int status)
{
	struct former_call *c = connect->data;
	struct former_nodes *f = c->f;

	if (status == UV_ECANCELED) /* end_call */
		return;
	if (status == UV_ECONNREFUSED) {
		c->node->gone = true;
		f->gone++;
	}
	end_call(c);
	if (f->gone == f->count)
		dvm_head_former_gone(f->head->head, head_now(f->head));
}

static void call(struct former_nodes *f, struct former_node *n)
{
	struct former_call *c = calloc(1, sizeof(*c));

	if (!c)
		return;
	*c = (struct former_call){ .f = f, .node = n };
	c->tcp.data = c->connect.data = c;
	uv_tcp_init(loop_uv(f->head->loop), &c->tcp);
	DL_APPEND(f->calls, c);
	f->ncalls++;
	n->called = true;
	if (uv_tcp_connect(&c->connect, &c->tcp, (const struct sockaddr *)&n->where, on_connect))
		end_call(c);
}

static void on_timer(uv_timer_t *timer)
{
	struct former_nodes *f = timer->data;

	if (!dvm_head_is_unheard(f->head->head)) {
		former_close(f->head);
		return;
	}
	for (size_t i = 0; i < f->count && f->ncalls < CALLS_MAX; i++)
		if (!f->all[i].called && !f->all[i].gone)
			call(f, &f->all[i]);
}

void former_begin(struct head_main *h)
{
	struct former_nodes *f = &h->former;

	f->head = h;
	if (!f->known || !dvm_head_is_unheard(h->head))
		return;
	if (!f->count)
		dvm_head_former_gone(h->head, head_now(h));
	f->timer.data = f;
	uv_timer_init(loop_uv(h->loop), &f->timer);
	uv_timer_start(&f->timer, on_timer, 0, AGAIN_MS);
	f->calling = true;
}

void former_close(struct head_main *h)
{
	struct former_nodes *f = &h->former;

	while (f->calls)
		end_call(f->calls);
	if (f->calling)
		uv_close((uv_handle_t *)&f->timer, NULL);
	f->calling = false;
}

void former_free(struct head_main *h)
{
	free(h->former.all);
	h->former.all = NULL;
}
