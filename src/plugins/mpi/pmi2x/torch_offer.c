/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Variables and ports of PyTorch and JAX. The first node keeps ports that nobody has, and its
 * agent tells the others.
 */
#include "slurm_compat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "launch_env.h"
#include "libio/listener_socket.h"
#include "torch_offer.h"

#define ADDRESS_NAME "MASTER_ADDR"
#define PORT_NAME "MASTER_PORT"
#define JAX_NAME "JAX_COORDINATOR_ADDRESS"
#define STEP_NAME "PMI2X_TORCH_STEP" /* whose variables these are */
#define PORT_TRIES 256
#define LOOPBACK "127.0.0.1"

static const char *const names[] = {
	"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
	"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT",
	ADDRESS_NAME, PORT_NAME, JAX_NAME, STEP_NAME,
};

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

/* Behind the ports where the nodes of the step listen. */
static uint16_t port_of_try(const struct torch_step *step, uint32_t try)
{
	const uint32_t behind = layout_nodes(step->layout) * STEP_PORT_TRIES;

	return seeded_port(step->port_seed, behind + try, step->port_first, step->port_last);
}

/* The first ones that nobody has. Returns a descriptor or a negative errno. */
static int keep_next(const struct torch_step *step, uint32_t *try, uint16_t *port)
{
	int fd = -EADDRINUSE;

	while (fd == -EADDRINUSE && *try < PORT_TRIES) {
		*port = port_of_try(step, *try);
		fd = port_keep(*port);
		(*try)++;
	}
	return fd;
}

static int keep_ports(struct torch_offer *o, const struct torch_step *step, int n, char *why,
		      size_t size)
{
	uint32_t try = 0;

	for (int i = 0; i < n; i++) {
		o->held[i] = keep_next(step, &try, &o->ports[i]);
		if (o->held[i] >= 0)
			continue;
		snprintf(why, size,
			 "%s has no port from %u to %u that PMI2X_TORCH can give to the tasks (%s): widen Pmi2xPorts in mpi.conf",
			 step->position ? "a node" : "the first node", step->port_first,
			 step->port_last, strerror(-o->held[i]));
		return o->held[i];
	}
	return 0;
}

/* The first ones of enum torch_port, on this node. */
static int ports_to_keep(const struct torch_offer *o, uint32_t position)
{
	return !position ? TORCH_PORTS : torch_offer_is_local(o) ? TORCH_PORT_STORE + 1 : 0;
}

static bool is_to_serve(enum conf_torch mode)
{
	return mode == CONF_TORCH_STORE || mode == CONF_TORCH_TREE;
}

/* For ranks that the first node does not tell its ports any more. */
static void guess_ports(struct torch_offer *o, const struct torch_step *step)
{
	for (uint32_t i = 0; i < TORCH_PORTS; i++)
		o->ports[i] = port_of_try(step, i);
}

/* A task of another step has started this one, or has submitted its job. */
static void forget_outer_step(char **env)
{
	if (!getenvp(env, STEP_NAME))
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unsetenvp(env, names[i]);
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
	o->jobid = step->jobid;
	o->held[TORCH_PORT_STORE] = o->held[TORCH_PORT_JAX] = -1;
	forget_outer_step(env);
	if (mode == CONF_TORCH_OFF)
		return 0;
	o->serves = is_to_serve(mode) && !is_set_by_job(env);
	if (is_to_serve(mode) && !o->serves)
		log_error(notes, "PMI2X_TORCH=%s serves no TCPStore, because the job has set MASTER_ADDR or MASTER_PORT: unset them",
			  mode == CONF_TORCH_TREE ? "tree" : "store");
	rc = find_address(o, step->first_node);
	if (rc) {
		snprintf(why, size, "the address of node %s, which PMI2X_TORCH is to give to the tasks, cannot be found (%s)",
			 step->first_node, strerror(-rc));
		return rc;
	}
	guess_ports(o, step);
	return keep_ports(o, step, ports_to_keep(o, step->position), why, size);
}

bool torch_offer_waits(const struct torch_offer *o, uint32_t position)
{
	return o->mode != CONF_TORCH_OFF && position;
}

uint16_t torch_offer_served_port(const struct torch_offer *o, uint32_t position)
{
	return o->serves && (!position || torch_offer_is_local(o)) ?
		       o->ports[TORCH_PORT_STORE] : 0;
}

bool torch_offer_is_local(const struct torch_offer *o)
{
	return o->serves && o->mode == CONF_TORCH_TREE;
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

static void set_jax(const struct torch_offer *o, uint16_t port, char ***env)
{
	char text[INET6_ADDRSTRLEN + sizeof("[]:65535")];

	snprintf(text, sizeof(text), strchr(o->address, ':') ? "[%s]:%u" : "%s:%u",
		 o->address, port);
	set_text(env, JAX_NAME, text);
}

void torch_offer_set_env(const struct torch_offer *o, const uint16_t ports[TORCH_PORTS],
			 uint32_t rank, uint32_t slot, uint32_t position, char ***env)
{
	bool is_local = torch_offer_is_local(o);
	uint32_t count;

	if (o->mode == CONF_TORCH_OFF)
		return;
	layout_ranks_at(o->layout, position, &count);
	set_number(env, "RANK", rank);
	set_number(env, "WORLD_SIZE", layout_ranks(o->layout));
	set_number(env, "LOCAL_RANK", slot);
	set_number(env, "LOCAL_WORLD_SIZE", count);
	set_number(env, "GROUP_RANK", position);
	set_jax(o, ports[TORCH_PORT_JAX], env);
	if (o->serves)
		set_store(env);
	set_text(env, ADDRESS_NAME, is_local ? LOOPBACK : o->address);
	set_number(env, PORT_NAME, (is_local ? o->ports : ports)[TORCH_PORT_STORE]);
	env_array_overwrite(env, STEP_NAME, o->jobid);
}

void torch_offer_free(struct torch_offer *o)
{
	for (int i = 0; i < TORCH_PORTS; i++)
		if (o->mode != CONF_TORCH_OFF && o->held[i] >= 0)
			close(o->held[i]);
	o->mode = CONF_TORCH_OFF;
}
