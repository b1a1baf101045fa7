/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers of errors. MPI_Recv reports an error by the handler of its communicator. MPI_Test,
 * of which it is made here, does so by that of MPI_COMM_WORLD or MPI_COMM_SELF in MPICH.
 */
#ifndef PMI2X_LEND_ERRORS_H
#define PMI2X_LEND_ERRORS_H

#include "lend/hooks.h"

struct errors {
	bool held;
	lend_arg world, self; /* handlers; a short handle fills the lower half. self 0: not held */
};

/* False: the program has set no handler, and ends at the first error. */
bool errors_are_handled(void);
/* Until errors_end, errors of tests are returned. No code of the program may run between. */
struct errors errors_begin(struct hooks *h);
/* Returns `rc` of a call on a communicator: an error comes by that communicator's handler. */
int errors_end(struct hooks *h, const struct errors *e, lend_arg comm, int rc);

#endif
