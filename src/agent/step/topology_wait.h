/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that wait for the node's topology as a file, which the host makes. */
#ifndef PMI2X_TOPOLOGY_WAIT_H
#define PMI2X_TOPOLOGY_WAIT_H

/* Operation of the engine; the argument is the service. */
void topology_wait_begin(void *arg);

#endif
