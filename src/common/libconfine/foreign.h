/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of pmi2x-pmixd and pmi2x-topology. They load libpmix and hwloc of the site, of
 * any release, so what those need is not known: some calls are denied, and all others
 * are allowed. doc/threat-model.md lists what is denied.
 *
 * For this thread and all that it makes, for good. Call it after confine_begin, before a
 * library of others is loaded and any thread made.
 */
#pragma once

#include "libconfine/confine.h"

/*
 * Both of what follows. 0, and a sentence on what this kernel, processor or build cannot
 * restrict, or ""; or a negative errno and why the process must not go on.
 */
int foreign_restrict(char why[CONFINE_WHY_MAX]);

/*
 * A denied system call fails with EPERM. System calls that libraries do without fail with
 * the error by which libraries know that: ENOSYS (io_uring, clone3), ENOTTY (ioctl). 0;
 * -ENOSYS: the kernel has no filters, or this is a sanitizer's build, and nothing is
 * denied; another negative errno: the same, and it should not be.
 */
int foreign_filter(void);

/*
 * No file below /dev can be opened but those of memory and chance (/dev/null, zero,
 * full, random, urandom, shm, hugepages, mqueue). Nor can one of a file system that is
 * mounted later at a directory of /, as automounters do: use a file there before.
 *
 * 0; -ENOSYS or -EOPNOTSUPP: the kernel has no Landlock (before Linux 5.13, or not
 * enabled); another negative errno. Then nothing has changed.
 */
int foreign_hide_devices(void);
