/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variables and ports of PyTorch and JAX. All nodes know the ports without a message: they
 * follow from the random number of the step, as the ports of the links do.
 */
#include "slurm_compat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "agent/setup.h"
#include "launch_env.h"
#include "libio/listener_socket.h"
#include "torch_offer.h"

#define ADDRESS_NAME "MASTER_ADDR"
#define PORT_NAME "MASTER_PORT"
#define JAX_NAME "JAX_COORDINATOR_ADDRESS"

/* Nodes listen at the ports of the first STEP_PORT_TRIES tries. */
static void choose_ports(struct torch_offer *o, const struct torch_step *step)
{
	uint32_t behind = layout_nodes(step->layout) * STEP_PORT_TRIES;

	for (uint32_t i = 0; i < TORCH_PORTS; i++)
		o->ports[i] = seeded_port(step->port_seed, behind + i, step->port_first,
					  step->port_last);
}

static int find_address(struct torch_offer *o, const char *node)
{
	struct sockaddr_storage addr;
	int rc = node_address_of(node, true, &addr);
	const void *ip = addr.ss_family == AF_INET6 ?
				 (const void *)&((struct sockaddr_in6 *)&addr)->sin6_addr :
				 (const void *)&((struct sockaddr_in *)&addr)->sin_addr;

	if (rc)
		return rc;
	return inet_ntop(addr.ss_family, ip, o->address, sizeof(o->address)) ? 0 : -errno;
}

/*
 * A socket that is bound and does not listen keeps the port from programs that ask for any
 * port. With SO_REUSEADDR a server of the step can still listen there.
 */
static int hold_port(uint16_t port, int family)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const void *addr = family == AF_INET6 ? (const void *)&in6 : (const void *)&in4;
	socklen_t len = family == AF_INET6 ? sizeof(in6) : sizeof(in4);
	int rc, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) ||
	    bind(fd, addr, len)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static int hold_ports(struct torch_offer *o, char *why, size_t size)
{
	for (int i = 0; i < TORCH_PORTS; i++) {
		int fd = hold_port(o->ports[i], AF_INET6);

		if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
			fd = hold_port(o->ports[i], AF_INET);
		if (fd < 0) {
			snprintf(why, size,
				 "port %u of the first node, which PMI2X_TORCH is to give to the tasks, cannot be used (%s): start the step again, or widen Pmi2xPorts in mpi.conf",
				 o->ports[i], strerror(-fd));
			return fd;
		}
		o->held[i] = fd;
	}
	return 0;
}

/* The job has a meeting point of its own. */
static bool is_set_by_job(char **env)
{
	return getenvp(env, ADDRESS_NAME) || getenvp(env, PORT_NAME);
}

int torch_offer_make(struct torch_offer *o, enum conf_torch mode,
		     const struct torch_step *step, char **env,
		     const struct log_hook *notes, char *why, size_t size)
{
	int rc;

	o->mode = mode;
	o->layout = step->layout;
	o->held[TORCH_PORT_STORE] = o->held[TORCH_PORT_JAX] = -1;
	if (mode == CONF_TORCH_OFF)
		return 0;
	o->serves = mode == CONF_TORCH_STORE && !is_set_by_job(env);
	if (mode == CONF_TORCH_STORE && !o->serves)
		log_error(notes, "PMI2X_TORCH=store serves no TCPStore, because the job has set MASTER_ADDR or MASTER_PORT: unset them");
	choose_ports(o, step);
	rc = find_address(o, step->first_node);
	if (rc) {
		snprintf(why, size, "the address of node %s, which PMI2X_TORCH is to give to the tasks, cannot be found (%s)",
			 step->first_node, strerror(-rc));
		return rc;
	}
	return step->position ? 0 : hold_ports(o, why, size);
}

uint16_t torch_offer_served_port(const struct torch_offer *o, uint32_t position)
{
	return o->serves && !position ? o->ports[TORCH_PORT_STORE] : 0;
}

/* ---- variables ---- */

static void set_text(char ***env, const char *name, const char *text)
{
	if (!getenvp(*env, name))
		env_array_overwrite(env, name, text);
}

static void set_number(char ***env, const char *name, uint64_t number)
{
	if (!getenvp(*env, name))
		launch_set_number(env, name, number);
}

/* Releases up to 2.4 want both. A task that runs its own server would find the port taken. */
static void set_store(char ***env)
{
	set_text(env, "TORCHELASTIC_USE_AGENT_STORE", "True");
	set_text(env, "TORCHELASTIC_RESTART_COUNT", "0");
}

static void set_jax(const struct torch_offer *o, char ***env)
{
	char text[INET6_ADDRSTRLEN + sizeof("[]:65535")];

	snprintf(text, sizeof(text), strchr(o->address, ':') ? "[%s]:%u" : "%s:%u",
		 o->address, o->ports[TORCH_PORT_JAX]);
	set_text(env, JAX_NAME, text);
}

void torch_offer_set_env(const struct torch_offer *o, uint32_t rank, uint32_t slot,
			 uint32_t position, char ***env)
{
	uint32_t count;

	if (o->mode == CONF_TORCH_OFF)
		return;
	layout_ranks_at(o->layout, position, &count);
	set_number(env, "RANK", rank);
	set_number(env, "WORLD_SIZE", layout_ranks(o->layout));
	set_number(env, "LOCAL_RANK", slot);
	set_number(env, "LOCAL_WORLD_SIZE", count);
	set_number(env, "GROUP_RANK", position);
	set_jax(o, env);
	if (o->serves)
		set_store(env);
	set_text(env, ADDRESS_NAME, o->address);
	set_number(env, PORT_NAME, o->ports[TORCH_PORT_STORE]);
}

void torch_offer_free(struct torch_offer *o)
{
	for (int i = 0; i < TORCH_PORTS; i++)
		if (o->mode != CONF_TORCH_OFF && o->held[i] >= 0)
			close(o->held[i]);
	o->mode = CONF_TORCH_OFF;
}
