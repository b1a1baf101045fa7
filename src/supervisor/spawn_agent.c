/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting the agent: what it is told goes into a memory file, descriptors get their
 * numbers, and the program is executed as it was when the step began. It drops its rights
 * itself, before it reads anything.
 */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcoll/tree.h"
#include "libio/fd.h"

#define GROUPS_TEXT_MAX 8192 /* bytes of /proc/self/cgroup */

/* ---- what it is told ---- */

static void add_known(const struct supervisor *s, struct setup *setup,
		      uint32_t position, bool may_block)
{
	uint32_t id = layout_node_id(s->step->layout, position);
	struct known_address *k = &setup->known[setup->nknown];

	if (s->host.node_address(s->host.arg, id, may_block, &k->addr))
		return; /* the agent asks, and hears why */
	k->node_id = id;
	setup->nknown++;
}

/* Connections to PyTorch's TCPStore count by the address of their node. */
static int find_all(const struct supervisor *s, struct setup *setup)
{
	uint32_t n = layout_nodes(s->step->layout);

	setup->known = calloc(n, sizeof(*setup->known));
	if (!setup->known)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		add_known(s, setup, i, true);
	setup->options.knows_nodes = true;
	return 0;
}

/* Neighbours that need no look-up: the agent need not ask for them. */
static int find_known(const struct supervisor *s, struct setup *setup)
{
	uint32_t n = layout_nodes(s->step->layout), k = s->step->tree_width;
	struct tree_place place;

	if (s->dormant.torch >= 0)
		return find_all(s, setup);
	if (s->options.agent.addresses_told)
		return 0;
	if (k == TREE_WIDTH_AUTO)
		k = tree_width(layout_ranks(s->step->layout));
	place = tree_place(n, k, s->step->position);
	setup->known = calloc(place.children + 1, sizeof(*setup->known));
	if (!setup->known)
		return -ENOMEM;
	if (place.parent != TREE_NONE)
		add_known(s, setup, place.parent, false);
	for (uint32_t i = 0; i < place.children; i++)
		add_known(s, setup, tree_child(&place, i).first, false);
	return 0;
}

static int pack_into(int fd, const struct setup *setup)
{
	struct buf b;
	int rc;

	buf_init(&b, SETUP_BYTES_MAX);
	rc = setup_pack(&b, setup);
	rc = rc ? rc : fd_write_all(fd, b.data, b.len);
	if (b.data)
		explicit_bzero(b.data, b.len);
	buf_free(&b);
	return rc;
}

/* A descriptor of it, or a negative errno. */
static int make_setup(const struct supervisor *s)
{
	struct setup setup = {
		.step = *s->step,
		.options = s->options.agent,
		.port = s->dormant.port,
	};
	int rc, fd = memfd_create("pmi2x-setup", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	rc = find_known(s, &setup);
	rc = rc ? rc : pack_into(fd, &setup);
	free(setup.known);
	secret_forget(&setup.options.secret);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* ---- the program ---- */

struct child_program launch_program(const struct supervisor *s, int file,
				    const char *name)
{
	return (struct child_program){
		.file = file,
		.name = name,
		.uid = s->options.program.uid,
		.gid = s->options.program.gid,
		.step = s->step->jobid,
		.node = supervisor_node_name(s),
	};
}

/* A step within its job: what follows the point of "<job>.<step>". */
static const char *step_name(const struct supervisor *s)
{
	const char *point = strrchr(s->step->jobid, '.');

	return point ? point + 1 : s->step->jobid;
}

int launch_find_leaf(const struct supervisor *s, enum leaf_kind kind,
		     struct leaf *leaf)
{
	char groups[GROUPS_TEXT_MAX];
	int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, groups, sizeof(groups) - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0 || geteuid()) /* such a slurmd has no cgroups either */
		return 0;
	groups[n] = '\0';
	return leaf_find(leaf, kind, groups, LEAF_MOUNT, step_name(s));
}

static int make_leaf(struct supervisor *s)
{
	int rc = launch_find_leaf(s, LEAF_EXEMPT, &s->leaf);

	return rc ? rc : leaf_make(&s->leaf);
}

static int spawn_program(struct supervisor *s, int *setup, int *host)
{
	struct dormant *dormant = &s->dormant;
	int *const fds[] = {
		setup, host, &dormant->ours, &dormant->listener, &dormant->connect_back,
		&dormant->region, &s->pmix.agents, &s->sync.listener, &s->sync.client,
		&dormant->torch,
	};
	struct child_program p = launch_program(s, s->options.program.fd,
						"pmi2x-agent");
	int rc;

	p.more = s->leaf.dirs;
	p.fds = fds;
	p.nfds = sizeof(fds) / sizeof(*fds);
	child_become_root();
	rc = make_leaf(s);
	return rc ? rc : child_start(&s->service.agent, &p);
}

/* ---- tests: a thread in its place ---- */

struct thread_start {
	int (*run)(int setup_fd, int host_fd, const struct agent_fds *fds);
	int setup, host;
	struct agent_fds fds;
};

static void *run_in_thread(void *arg)
{
	struct thread_start t = *(struct thread_start *)arg;

	free(arg);
	t.run(t.setup, t.host, &t.fds);
	return NULL;
}

/* The thread gets all descriptors. */
static int start_thread(struct supervisor *s, int *setup, int *host)
{
	struct dormant *dormant = &s->dormant;
	struct thread_start *t = malloc(sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	*t = (struct thread_start){
		s->options.program.run, *setup, *host,
		{ dormant->ours, dormant->listener, dormant->connect_back, dormant->region,
		  s->pmix.agents, s->sync.listener, s->sync.client, dormant->torch },
	};
	rc = thread_start(&s->agent, run_in_thread, t);
	if (rc) {
		free(t);
		return rc;
	}
	s->has_thread = true;
	*setup = *host = dormant->ours = dormant->listener = dormant->connect_back =
		dormant->region = s->pmix.agents = s->sync.listener = s->sync.client =
		dormant->torch = -1;
	return 0;
}

/* ---- both ---- */

static int connect_agent(struct supervisor *s, int *setup, int *host)
{
	int rc = child_connect(&s->service.agent, host);

	if (rc)
		return rc;
	*setup = make_setup(s);
	return *setup < 0 ? *setup : 0;
}

int launch_agent(struct supervisor *s)
{
	int setup = -1, host = -1;
	int rc = pmix_connect_agent(s);

	rc = rc ? rc : connect_agent(s, &setup, &host);
	if (!rc)
		rc = s->options.program.run ? start_thread(s, &setup, &host) :
					      spawn_program(s, &setup, &host);
	fd_close(&setup);
	fd_close(&host);
	if (rc)
		return rc;
	dormant_hand_over(s);
	fd_close(&s->pmix.agents);
	rc = dormant_pass_ranks(s);
	/* the agent has ended: the service reads why */
	return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}
