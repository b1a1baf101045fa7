/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the running program lies: others of pmi2x-dvm lie beside it. */
#ifndef PMI2X_DVM_SELF_PATH_H
#define PMI2X_DVM_SELF_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* Its directory. False: that cannot be told. */
bool own_dir(char *out, size_t size);

#endif
