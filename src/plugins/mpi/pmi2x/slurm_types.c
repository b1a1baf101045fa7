/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * No code: compiles when what slurm_calls.h lists has the types given there.
 * configure compiles this for single entries, to name those that have not.
 */
#include "slurm_compat.h"

#ifndef SLURM_CALLS
#define SLURM_CALLS "slurm_calls.h"
#endif

#define HAS_TYPE(name, type) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(name), type), \
		       #name " has another type in this release of Slurm")
#define SLURM_CALL(name, result, ...) HAS_TYPE(name, result (__VA_ARGS__));
#define SLURM_HOOK(name, result, ...) HAS_TYPE(name, result (__VA_ARGS__));
#define SLURM_DATA(name, type) HAS_TYPE(name, type);
#include SLURM_CALLS
