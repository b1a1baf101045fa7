/* SPDX-License-Identifier: BSD-3-Clause */
/* A process without a process manager: a job of one. */
#ifndef PMI2X_SINGLETON_H
#define PMI2X_SINGLETON_H

struct job;
struct singleton;

/* Be one. 0 or -ENOMEM. */
int singleton_start(struct job *job);
void singleton_destroy(struct singleton *s); /* NULL is allowed */

#endif
