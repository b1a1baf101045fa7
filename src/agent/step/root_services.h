/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services of srun in the agent of the first node, for a step that no srun stays
 * with: names, aborts, and lines about failures, which go to the log of the node's host.
 */
#pragma once

#include "agent/step/service_internal.h"

struct root_services;

/* 0 or a negative errno. */
int root_services_open(struct service *s);
void root_services_close(struct service *s);
void root_services_free(struct service *s);

/* A frame that would go to srun. As srun_link_send. */
int root_services_send(struct service *s, struct payload *frame);

/* No answer is on its way. */
bool root_services_is_flushed(const struct service *s);
