/* SPDX-License-Identifier: BSD-3-Clause */
/* The client library's state of each simulated process: it has one for a program. */
#pragma once

struct process;

/* Another process is to run. */
void client_switch(struct process *from, struct process *to);
