/* SPDX-License-Identifier: BSD-3-Clause */
/* A process without a process manager: a job of one. */
#ifndef PMI2X_SINGLETON_H
#define PMI2X_SINGLETON_H

struct singleton;

/* 0 or -ENOMEM. */
int singleton_create(struct singleton **out);
void singleton_destroy(struct singleton *s); /* NULL is allowed */

#endif
