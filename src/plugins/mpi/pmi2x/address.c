/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Node addresses, and the way to an agent through Slurm's own messages. */
#include "slurm_compat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "address.h"
#include "slurm_log.h"
#include "socket_name.h"
#include "stale_sockets.h"

#define TELL_BACKLOG 64

static bool is_numeric(const char *name)
{
	struct in6_addr address;

	return inet_pton(AF_INET, name, &address) == 1 ||
	       inet_pton(AF_INET6, name, &address) == 1;
}

/*
 * Not slurm_conf_get_addr, where there is a name: it asks the resolver while it
 * holds the lock of Slurm's configuration, and so keeps all others waiting.
 */
int node_address_of(const char *node, bool may_block,
		    struct sockaddr_storage *out)
{
	char *name = slurm_conf_get_address(node);
	slurm_addr_t address = { 0 };

	if (name && !may_block && !is_numeric(name)) {
		xfree(name);
		return -EAGAIN;
	}
	if (name)
		slurm_set_addr(&address, 0, name);
	else if (slurm_conf_get_addr(node, &address, 0) != SLURM_SUCCESS)
		address.ss_family = AF_UNSPEC;
	xfree(name);
	memcpy(out, &address, sizeof(*out));
	return out->ss_family == AF_UNSPEC ? -EHOSTUNREACH : 0;
}

static bool is_on(const char *node, const char *machine)
{
	char *name = slurm_conf_get_hostname(node);
	bool same = name && !strcmp(name, machine);

	xfree(name);
	return same;
}

bool node_shares_machine(char *const *names, uint32_t count, uint32_t self)
{
	char *machine = slurm_conf_get_hostname(names[self]);
	bool shares = false;

	if (machine && strcmp(machine, names[self]))
		for (uint32_t i = 0; i < count && !shares; i++)
			shares = i != self && is_on(names[i], machine);
	xfree(machine);
	return shares;
}

/* Path of the socket of a node in its SlurmdSpoolDir, for free(). */
static char *socket_path(const struct connect_back_socket *t, const char *spool,
			 uint32_t node_id)
{
	char name[SOCKET_NAME_BYTES], *path;

	socket_name(name, t->jobid, t->run, node_id);
	return asprintf(&path, "%s/%s", spool, name) < 0 ? NULL : path;
}

/*
 * The path of the socket, with %n and %h of slurm.conf expanded as slurmd does for this
 * message.
 */
static char *expanded_path(const struct connect_back_socket *t,
			   const char *node, uint32_t node_id)
{
	char *spool = slurm_conf_expand_slurmd_path(slurm_conf.slurmd_spooldir,
						    node, node);
	char *path = socket_path(t, spool, node_id);

	xfree(spool);
	return path;
}

/* With the path name owned by the user: only then may slurmd connect as him. */
static int listen_at(const char *path, uid_t uid)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, rc;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		goto fail;
	if (chmod(path, S_IRUSR | S_IWUSR) < 0 || lchown(path, uid, -1) < 0 ||
	    listen(fd, TELL_BACKLOG) < 0)
		goto fail_unlink;
	return fd;
fail_unlink:
	rc = -errno;
	unlink(path);
	errno = -rc;
fail:
	rc = -errno;
	close(fd);
	return rc;
}

/*
 * Links are usually made without it. A path that is too long is so in every step of the
 * site, and its neighbours name it where they need it.
 */
static void report_no_socket(const char *path, int error)
{
	if (error != -ENAMETOOLONG)
		log_error(&slurm_log,
			  "cannot create the socket %s: %s; other nodes cannot ask this node to connect to them: make room in SlurmdSpoolDir",
			  path, strerror(-error));
}

int connect_back_socket_open(struct connect_back_socket *t, const char *node,
			     uint32_t node_id, const char *jobid, uint32_t run,
			     uid_t uid)
{
	int rc;

	memset(t, 0, sizeof(*t));
	t->fd = -1;
	t->jobid = jobid;
	t->run = run;
	t->path = expanded_path(t, node, node_id);
	rc = t->path ? listen_at(t->path, uid) : -ENOMEM;
	if (rc >= 0) {
		t->fd = rc;
		return 0;
	}
	report_no_socket(t->path ? t->path : "?", rc);
	free(t->path); /* not ours to unlink */
	t->path = NULL;
	return rc;
}

void connect_back_socket_unlink(const struct connect_back_socket *t)
{
	if (t->path)
		unlink(t->path);
}

static void remove_stale(const struct connect_back_socket *t)
{
	char *dir = t->path ? strdup(t->path) : NULL;

	if (dir)
		stale_sockets_remove(dirname(dir), SOCKET_NAME_PREFIX);
	free(dir);
}

void connect_back_socket_close(struct connect_back_socket *t)
{
	connect_back_socket_unlink(t);
	remove_stale(t); /* here, and not while the step starts */
	free(t->path);
	memset(t, 0, sizeof(*t));
	t->fd = -1;
}

/* slurmd would refuse it, with an error that says less. */
static bool is_too_long(const struct connect_back_socket *t, const char *node,
			uint32_t node_id)
{
	char *path = expanded_path(t, node, node_id);
	bool too_long = path && strlen(path) > SOCKET_PATH_MAX;

	free(path);
	return too_long;
}

static bool slurmd_is_away(int rc)
{
	return rc >= SLURM_COMMUNICATIONS_CONNECTION_ERROR &&
	       rc <= SLURM_COMMUNICATIONS_SHUTDOWN_ERROR;
}

static int error_of_forward(const char *node, int rc)
{
	/* slurmd's own errno, when it could not connect to the socket. */
	if (!rc || rc == ENOENT || rc == ECONNREFUSED)
		return -rc;
	if (slurmd_is_away(rc))
		return -EHOSTUNREACH;
	log_info(&slurm_log, "cannot send a message to node %s through slurmd: %s", node,
		 slurm_strerror(rc));
	return -EIO;
}

int connect_back_send(const struct connect_back_socket *t, const char *node,
		      uint32_t node_id, const void *data, size_t len)
{
	char *path, *nodes;
	int rc;

	if (is_too_long(t, node, node_id))
		return -ENAMETOOLONG;
	path = socket_path(t, slurm_conf.slurmd_spooldir, node_id);
	nodes = xstrdup(node);
	rc = path && len <= UINT32_MAX ?
		slurm_forward_data(&nodes, path, (uint32_t)len, data) : -1;
	free(path);
	xfree(nodes);
	return error_of_forward(node, rc);
}
