/* SPDX-License-Identifier: BSD-3-Clause */
/* The request of PMIx_Spawn, as a request of libpmi/spawn.h. */
#pragma once

#include <pmix_common.h>

#include "libutil/buf.h"

/*
 * `packed`, which is made here, is the caller's to free; with any result. The directives
 * for the working directory and hosts are known; others are ignored, unless the client
 * says that they are required. Variables whose value is `dir`, the server's directory, are
 * left out. Errors are those of PMIx.
 */
pmix_status_t spawn_make(struct buf *packed, const pmix_info_t job_info[], size_t njob,
			 const pmix_app_t apps[], size_t napps, const char *dir);
