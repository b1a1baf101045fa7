/* SPDX-License-Identifier: BSD-3-Clause */
/* What every unit test includes: cmocka and what it needs before it. */
#ifndef PMI2X_UNIT_H
#define PMI2X_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#endif
