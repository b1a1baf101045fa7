/* SPDX-License-Identifier: BSD-3-Clause */
/* The server module: what libpmix calls. Everything becomes an event. */
#pragma once

#include "helpers/pmixd/events.h"
#include "helpers/pmixd/library.h"

/*
 * libpmix copies as many bytes of the module as its own version has: all versions have
 * less than this, and what they have beyond the members set here is zero: not offered.
 */
#define UPCALLS_MODULE_SIZE 1024

union upcalls_module {
	pmix_server_module_t module;
	char room[UPCALLS_MODULE_SIZE];
};

/*
 * `queue` gets the events of `library`, from now on. There is one in a process. `dir` is the
 * server's, and stays; `trims`: with the first fence store_trim is called for it.
 */
void upcalls_init(union upcalls_module *m, const struct library *library,
		  struct events *queue, const char *dir, bool trims);

/*
 * libpmix's own events, of clients that have gone for example: it wants to be told that
 * they are handled. For Register_event_handler.
 */
void upcalls_notified(size_t id, pmix_status_t status, const pmix_proc_t *source,
		      pmix_info_t info[], size_t ninfo, pmix_info_t results[],
		      size_t nresults, pmix_event_notification_cbfunc_fn_t done,
		      void *done_arg);

/* The answer to a dmodex_request whose argument was an event of EVENT_COMMITTED. */
void upcalls_committed(pmix_status_t status, char *data, size_t len, void *event);
