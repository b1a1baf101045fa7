/* SPDX-License-Identifier: BSD-3-Clause */
/* Attacks of the test host on a pmi2x-pmixd, by options->attack. */
#pragma once

#include "host.h"

/*
 * When a node has started: "garbage": its agent sends what is no message; "nspace": what is
 * no namespace; "agent-ends", "host-ends": so does the connection.
 */
void attack_start(struct host *h, struct node *n);
/*
 * When clients may come: "noise": many connect, say nonsense, or nothing, and stay;
 * "strangers": the same of another user, who must be sent away: the host ends if not.
 */
void attack_listeners(struct host *h);
