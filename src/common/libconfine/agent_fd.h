/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptors of an agent, and of a helper, by number. */
#pragma once

/* The numbers of an agent's descriptors, from its first input on. */
enum agent_fd {
	AGENT_FD_SETUP = 3, /* agent/setup.h */
	AGENT_FD_HOST,      /* messages: libconfine/host_msg.h */
	AGENT_FD_REGISTRATION,
	AGENT_FD_LISTENER,  /* this and the next: closed where there is none */
	AGENT_FD_CONNECT_BACK,
	AGENT_FD_REGION,
	AGENT_FD_PMIX,
	AGENT_FD_SYNC,      /* these two: see agent_fds */
	AGENT_FD_SYNC_CLIENT,
	AGENT_FD_TORCH,
	AGENT_FD_END,
};
