/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The meeting point of PyTorch and JAX: variables for the tasks of a step, ports that the
 * first node keeps for them, and whether its agent serves the TCPStore of PyTorch.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/setup.h"
#include "libcoll/layout.h"
#include "libutil/log.h"
#include "options.h"

struct torch_offer {
	enum conf_torch mode;
	bool serves;  /* the agent of the first node, or of each node, serves the TCPStore */
	char address[INET6_ADDRSTRLEN]; /* of the first node */
	/* Ports of the first node; elsewhere likely ones, but for the TCPStore's with `tree`. */
	uint16_t ports[TORCH_PORTS];
	int held[TORCH_PORTS]; /* sockets that keep these; -1 */
	const struct layout *layout;
	const char *jobid; /* name of the step */
};

/* Description of the step. */
struct torch_step {
	const char *jobid; /* its name */
	const struct layout *layout;
	uint32_t position;      /* of this node */
	const char *first_node; /* its name */
	uint64_t port_seed;
	uint16_t port_first, port_last;
};

/*
 * Decide, and keep the ports. 0, or a negative errno and why the step cannot run, in `why`
 * of `size` bytes. Release with torch_offer_free in any case. Notes are for the user.
 */
int torch_offer_make(struct torch_offer *o, enum conf_torch mode,
		     const struct torch_step *step, char **env,
		     const struct log_hook *notes, char *why, size_t size);
/* The ranks of this node wait for the ports of the first one. */
bool torch_offer_waits(const struct torch_offer *o, uint32_t position);
/* The port at which the agent of this node serves; 0: it does not. */
uint16_t torch_offer_served_port(const struct torch_offer *o, uint32_t position);
/* Each agent serves the tasks of its node, at 127.0.0.1. */
bool torch_offer_is_local(const struct torch_offer *o);
/*
 * Add the variables of a task that the job has not set; those of an outer step are gone.
 * `slot`: of the rank at its node; `ports`: of the first node.
 */
void torch_offer_set_env(const struct torch_offer *o, const uint16_t ports[TORCH_PORTS],
			 uint32_t rank, uint32_t slot, uint32_t position, char ***env);
void torch_offer_free(struct torch_offer *o);
