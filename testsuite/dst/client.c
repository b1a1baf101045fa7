/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library keeps its session and one mutex at file scope. They are exchanged
 * when another simulated process runs, which needs their names: so session.c is
 * compiled in here, unchanged, instead of being taken from the library.
 */
#include "../../contrib/libpmi2x/session.c"

#include "testsuite/dst/client.h"
#include "testsuite/dst/world.h"

void client_switch(struct process *from, struct process *to)
{
	from->session = atomic_load(&current);
	memcpy(&from->life, &life, sizeof(life));
	atomic_store(&current, to->session);
	memcpy(&life, &to->life, sizeof(life));
}
