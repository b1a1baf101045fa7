/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets that a killed slurmstepd leaves are removed, and nothing else. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "stale_sockets.h"

#define PREFIX "sock.test."

struct place {
	char dir[32];
	char path[80]; /* of the last file made */
};

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	strcpy(p->dir, "/tmp/stale-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	unlink(p->path);
	assert_int_equal(rmdir(p->dir), 0);
	free(p);
	return 0;
}

static void name_file(struct place *p, const char *name)
{
	snprintf(p->path, sizeof(p->path), "%s/%s", p->dir, name);
}

/* A bound socket, its descriptor. */
static int bound(struct place *p, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	name_file(p, name);
	strcpy(address.sun_path, p->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
			      sizeof(address)), 0);
	return fd;
}

static bool is_there(const struct place *p)
{
	return access(p->path, F_OK) == 0;
}

TEST_WITH(one_without_owner_goes, set_up, tear_down)
{
	struct place *p = *state;

	close(bound(p, PREFIX "1.0"));
	assert_true(is_there(p));
	stale_sockets_remove(p->dir, PREFIX);
	assert_false(is_there(p));
}

TEST_WITH(one_in_use_stays_and_is_not_disturbed, set_up, tear_down)
{
	struct place *p = *state;
	int fd = bound(p, PREFIX "1.0");
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	stale_sockets_remove(p->dir, PREFIX); /* it does not listen yet */
	assert_true(is_there(p));
	assert_int_equal(listen(fd, 1), 0);
	stale_sockets_remove(p->dir, PREFIX);
	assert_true(is_there(p));
	assert_int_equal(poll(&poll_fd, 1, 0), 0); /* no connection */
	close(fd);
}

TEST_WITH(other_names_stay, set_up, tear_down)
{
	struct place *p = *state;

	close(bound(p, "n1_1.0"));
	stale_sockets_remove(p->dir, PREFIX);
	assert_true(is_there(p));
}

TEST_WITH(other_files_stay, set_up, tear_down)
{
	struct place *p = *state;
	int fd;

	name_file(p, PREFIX "1.0");
	fd = open(p->path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	stale_sockets_remove(p->dir, PREFIX);
	assert_true(is_there(p));
}

TEST_WITH(no_directory_is_no_harm, set_up, tear_down)
{
	struct place *p = *state;

	name_file(p, "none");
	stale_sockets_remove(p->path, PREFIX);
}
