/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Daemons that wait for another head when theirs is lost (up --orphan). A head writes down
 * where its daemons listen, and what they are told at their start (bootstrap.h), in a file
 * beside its journal. The next head reads that, takes the name and secret, and calls them;
 * those that answer belong to it then, at the positions that they had.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/head/head_main.h"
#include "libutil/array.h"

#define FILE_NAME "daemons"
#define UNHEARD "unheard\n" /* a line: ranks of daemons that are not in it may run */
#define LINE_MAX_BYTES (DVM_TEXT_MAX + 128)

struct orphan {
	struct dvm_address where;
	char *name;
	bool gone; /* no daemon listens there: its zygote kills its ranks */
};

static void file_path(const struct head_main *h, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/" FILE_NAME, h->options.journal.dir);
}

/* ---- writing ---- */

static void put_node(const struct head_main *h, uint32_t i, FILE *out)
{
	char ip[INET6_ADDRSTRLEN];
	struct dvm_address where;
	const char *name = dvm_head_node_where(h->head, i, &where);

	inet_ntop(AF_INET6, where.ip, ip, sizeof(ip));
	fprintf(out, "node %u %s %u %s\n", i, ip, where.port, name);
}

/* To be freed and forgotten; NULL: no memory. */
static char *format(const struct head_main *h)
{
	char *first = welcome_format(&h->welcome), *text = NULL;
	size_t size;
	FILE *out = first ? open_memstream(&text, &size) : NULL;

	if (out) {
		fputs(first, out);
		for (uint32_t i = 0; i < dvm_head_registered(h->head); i++)
			put_node(h, i, out);
		if (dvm_head_is_unheard(h->head))
			fputs(UNHEARD, out);
	}
	if (first)
		explicit_bzero(first, strlen(first));
	free(first);
	if (out && fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

void orphans_publish(struct head_main *h)
{
	char path[PATH_MAX];
	int rc;

	if (!h->options.orphan_s) {
		former_publish(h);
		return;
	}
	if (!head_journal_is_ours(h))
		return;
	file_path(h, path);
	h->noted_unheard = dvm_head_is_unheard(h->head);
	rc = address_write(h, path, format(h));
	if (rc)
		head_say(h, "note another head will not find the daemons of this one: %s cannot be written: %s",
			  path, strerror(-rc));
}

void orphans_turn(struct head_main *h)
{
	if (h->noted_unheard && !dvm_head_is_unheard(h->head))
		orphans_publish(h);
}

void orphans_withdraw(const struct head_main *h)
{
	char path[PATH_MAX];

	if (!h->options.journal.dir)
		return;
	file_path(h, path);
	unlink(path);
	former_withdraw(h);
}

/* ---- reading ---- */

static void forget(struct head_main *h)
{
	for (uint32_t i = 0; i < h->norphans; i++)
		free(h->orphans[i].name);
	free(h->orphans);
	h->orphans = NULL;
	h->norphans = 0;
}

/* 0 or a negative errno. */
static int take_node(struct head_main *h, char *line, size_t *cap)
{
	struct orphan o = { 0 };
	char ip[INET6_ADDRSTRLEN];
	unsigned position;
	int name = 0, rc;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "node %u %45s %hu %n", &position, ip, &o.where.port, &name) != 3 ||
	    !name || !line[name] || position != h->norphans ||
	    inet_pton(AF_INET6, ip, o.where.ip) != 1)
		return -EPROTO;
	rc = array_grow(&h->orphans, h->norphans, cap, sizeof(*h->orphans));
	o.name = rc ? NULL : strdup(line + name);
	if (!o.name)
		return -ENOMEM;
	h->orphans[h->norphans++] = o;
	return 0;
}

static int read_nodes(struct head_main *h, FILE *in)
{
	char line[LINE_MAX_BYTES];
	size_t cap = 0;
	int rc = 0;

	while (!rc && fgets(line, sizeof(line), in))
		if (!strcmp(line, UNHEARD))
			h->unheard = true;
		else
			rc = take_node(h, line, &cap);
	return rc;
}

/* -ENOENT: there is none; -EPERM: it is not the user's alone. */
static int open_file(const char *path, FILE **out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & 077) {
		close(fd);
		return -EPERM;
	}
	*out = fdopen(fd, "r");
	if (!*out)
		close(fd);
	return *out ? 0 : -ENOMEM;
}

static int read_file(struct head_main *h, const char *path, struct welcome *w)
{
	FILE *in = NULL;
	int rc = open_file(path, &in);

	if (rc)
		return rc;
	rc = welcome_read(w, in);
	rc = rc ? rc : read_nodes(h, in);
	fclose(in);
	return rc;
}

/* Takes the identity of the DVM that these daemons belong to. */
static void take_identity(struct head_main *h, const struct welcome *w)
{
	bool same = !h->options.orphan_s && w->lease_ms;

	memcpy(h->welcome.dvm, w->dvm, sizeof(h->welcome.dvm));
	h->welcome.secret = h->self.secret = w->secret;
	if (!h->options.orphan_s)
		h->welcome.orphan_s = w->orphan_s;
	if (same || w->lease_ms > h->welcome.lease_ms) /* these daemons have what they were told */
		h->welcome.lease_ms = w->lease_ms;
	if (w->grace_ms > h->welcome.grace_ms)
		h->welcome.grace_ms = w->grace_ms;
}

/* ---- calling ---- */

/* All have answered, or will not. */
static void decide(struct head_main *h)
{
	uint32_t adopted = h->nlinks;
	int rc = 0;

	if (h->leaving)
		return;
	if (!adopted) {
		forget(h);
		orphans_withdraw(h);
		rc = head_new_identity(h);
	}
	h->options.orphan_s = h->welcome.orphan_s;
	rc = rc ? rc : h->hooks->begin(h, adopted);
	if (rc)
		head_fail(h, "%s", strerror(-rc));
}

void orphans_answer(struct head_main *h, uint32_t position, int error)
{
	h->orphans[position].gone = error == -ECONNREFUSED;
	h->unheard = h->unheard || (error && error != -ECONNREFUSED);
	if (error == -EPROTONOSUPPORT)
		head_fail(h, "a daemon of another version of pmi2x waits for a head on %s: use the release that wrote the journal in %s",
			   h->orphans[position].name, h->options.journal.dir);
	if (!--h->called)
		decide(h);
}

static int refuse(struct head_main *h, const char *path, int rc)
{
	const char *why = rc == -EPERM ? "can be read by other users" :
			  rc == -EPROTO ? "is damaged" :
			  rc == -EPROTONOSUPPORT ? "was written by another version of pmi2x" :
						   strerror(-rc);

	head_say(h, "failed %s, which lists where tasks may still run, %s: remove the file when no task runs",
		  path, why);
	return 1;
}

/* While they are called, each counts once; and once is for the loop's end. */
static void call_all(struct head_main *h)
{
	h->called = h->norphans + 1;
	for (uint32_t i = 0; i < h->norphans; i++)
		if (nodes_call(h, i, &h->orphans[i].where)) {
			h->unheard = true;
			h->called--;
		}
	if (!--h->called)
		decide(h);
}

int orphans_call(struct head_main *h)
{
	char path[PATH_MAX];
	struct welcome w;
	int rc;

	if (!h->options.journal.resume)
		return 0;
	file_path(h, path);
	rc = read_file(h, path, &w);
	if (rc == -ENOENT) {
		h->unheard = true;
		former_read(h);
		return 0;
	}
	if (!rc)
		rc = nodes_make_room(h, h->norphans);
	if (rc)
		return refuse(h, path, rc);
	take_identity(h, &w);
	secret_forget(&w.secret);
	call_all(h);
	return 0;
}

/* ---- having them ---- */

const char *orphans_name(const struct head_main *h, uint32_t position)
{
	return position < h->norphans ? h->orphans[position].name : NULL;
}

void orphans_be_absent(struct head_main *h, uint32_t position)
{
	const struct orphan *o = position < h->norphans ? &h->orphans[position] : NULL;

	if (!o)
		return;
	dvm_head_node_absent(h->head, position, o->name, &o->where);
	if (o->gone)
		dvm_head_node_gone(h->head, position, head_now(h));
}

void orphans_adopt(struct head_main *h)
{
	static const struct dvm_msg adopt = { .type = DVM_ADOPT };
	char room[16];
	struct buf b;

	buf_init_in(&b, room, sizeof(room));
	(void)dvm_msg_pack(&b, &adopt);
	for (uint32_t i = 0; i < h->norphans; i++) {
		dvm_head_node_address(h->head, i, h->orphans[i].where.ip);
		if (h->links[i])
			nodes_send(h, i, b.data, b.len);
		else
			orphans_be_absent(h, i);
	}
}
