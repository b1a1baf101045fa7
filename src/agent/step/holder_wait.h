/* SPDX-License-Identifier: BSD-3-Clause */
/* Find the process that has the socket of a PMIx client: ask the host, or look here. */
#ifndef PMI2X_HOLDER_WAIT_H
#define PMI2X_HOLDER_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* For pmi_host_ops.find_holder. */
void holder_wait_begin(void *service, const unsigned char *socket, uint32_t near,
		       bool all);

#endif
