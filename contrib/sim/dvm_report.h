/* SPDX-License-Identifier: BSD-3-Clause */
/* Results of simulated DVMs. */
#pragma once

#include <stdio.h>

#include "dvm_sim.h"

/* For people. It sorts s->starts. */
void dvm_report_table(struct dvm_sim *s, FILE *out);
/* CSV: a line for each task, if the simulation kept them. */
void dvm_report_tasks(const struct dvm_sim *s, FILE *out);
