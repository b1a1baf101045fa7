/* SPDX-License-Identifier: BSD-3-Clause */
/* A process without a process manager: a job of one. */
#pragma once

struct job;
struct singleton;

/* Be one. 0 or -ENOMEM. */
int singleton_start(struct job *job);
void singleton_destroy(struct singleton *s); /* NULL is allowed */
