/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program's MPI, which this library replaces. */
#ifndef PMI2X_LEND_REAL_H
#define PMI2X_LEND_REAL_H

/*
 * The next function of this name behind this library, or that of the library which has
 * called: Python opens MPI later. NULL: there is none.
 */
void *lend_real(const char *name, const void *caller);
/* As lend_real, but without such a function the process ends with a message. */
void *lend_need(const char *name, const void *caller);

#endif
