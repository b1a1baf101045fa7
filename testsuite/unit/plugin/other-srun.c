/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library that a plugin of this release must not use: srun's end with another
 * interface.
 */
#include "srun/library.h"

const struct srun_library pmi2x_srun_library = { .interface = 1000 };
