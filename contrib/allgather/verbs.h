/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the verbs transport, for verbs.c and for tests that break it. */
#pragma once

#include "transport.h"
#include "verbs_device.h"
#include "verbs_link.h"
#include "verbs_listener.h"

struct transport {
	struct transport_events events;
	struct verbs_device device;
	struct verbs_listener listener;
	struct verbs_link links[SIDES];
};
