/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmix, opened while the program runs: which one serves a step is the site's choice,
 * and a node without one has the program all the same.
 */
#pragma once

#include <pmix.h>
#include <pmix_server.h>

#define LIBRARY_WHY_MAX 512
#define LIBRARY_VERSION_MAX 32

/* Functions of libpmix that are called. */
#define LIBRARY_CALLS(CALL) \
	CALL(server_init) \
	CALL(server_register_nspace) \
	CALL(server_deregister_nspace) \
	CALL(server_register_client) \
	CALL(server_dmodex_request) \
	CALL(Register_event_handler) \
	CALL(Store_internal) \
	CALL(Notify_event) \
	CALL(Data_pack) \
	CALL(Data_unpack) \
	CALL(Value_destruct) \
	CALL(Error_string)

struct library {
	void *handle;
	char version[LIBRARY_VERSION_MAX]; /* "5.0.11" */
#define LIBRARY_MEMBER(name) __typeof__(PMIx_##name) *name;
	LIBRARY_CALLS(LIBRARY_MEMBER)
#undef LIBRARY_MEMBER
};

/* A buffer that Data_pack has made, for Data_unpack, which only reads it. */
static inline pmix_data_buffer_t library_packed(const void *data, size_t len)
{
	return (pmix_data_buffer_t){
		.base_ptr = (char *)data,
		.pack_ptr = (char *)data + len,
		.unpack_ptr = (char *)data,
		.bytes_allocated = len,
		.bytes_used = len,
	};
}

/*
 * Open the one at `path`. It stays open as long as the process lives. 0; or -ENOENT:
 * it cannot be loaded, -ELIBACC: is not libpmix, -EPROTONOSUPPORT: is too old, with a
 * sentence for the administrator in `why`.
 */
int library_open(struct library *l, const char *path, char why[LIBRARY_WHY_MAX]);

/*
 * Wait until the library's thread, which takes one thing after the other, has done all
 * that it was asked before: it has answered what it could. `nspace` is one that it has.
 */
void library_pass(const struct library *l, const char *nspace);
