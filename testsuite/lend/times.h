/* SPDX-License-Identifier: BSD-3-Clause */
/* Processor time in seconds: of this process, and of the whole machine. */
#pragma once

double own_time(void);
double machine_time(void);
