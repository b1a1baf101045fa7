/* SPDX-License-Identifier: BSD-3-Clause */
/* The struct that the files of a service share; each but service.c owns one member. */
#pragma once

#include <uv.h>

#include "agent/node.h"
#include "agent/step/service.h"
#include "libio/holder.h"

struct srun_link_ops;

struct service {
	struct node *node;
	const struct pmi_step *step;
	struct peers *peers;
	int registration;     /* ranks come over it */
	int pmix_fd;          /* -1: PMIx is not offered, or pmix has it */
	struct region_writer *region; /* NULL: no shared memory */
	struct pmi_host_ops ops;
	struct pmi_server *server;
	struct ranks *ranks;
	struct slot_wakes *wakes;     /* NULL: ranks use their sockets */
	struct control_path *control;
	struct store *store;          /* of the step, for programs without PMI */
	int sync_fds[2];              /* agent_fds.sync and sync_client, until sync has them */
	int torch_fd;                 /* agent_fds.torch, until torch has it */
	struct torch_tree *torch_tree; /* NULL: no ports of PyTorch */
	struct torch_door *torch;     /* NULL: nobody speaks TCPStore here */
	struct sync_door *sync;       /* NULL: no socket for its clients */
	struct pmix_stream *pmix;     /* NULL: the host has a way, or PMIx is not offered */
	struct srun_link *srun;
	const struct srun_link_ops *srun_ops;
	struct root_services *root;   /* used with agent_options.no_srun */
	struct service_status *status;
	struct trace *trace;          /* NULL: none is wanted */
	bool leaving;
	uv_timer_t tidy; /* of the server, when all is quiet */
	uv_timer_t topology; /* until then ranks wait for it */
	uv_timer_t holder; /* when it expires, look for the process */
	struct holder_question holder_question;
	uv_timer_t fetch; /* until then others wait for what ranks put */
	uv_timer_t held; /* answers that wait for the end of the step */
};
