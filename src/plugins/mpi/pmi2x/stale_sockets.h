/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unix sockets in a directory whose owner was killed before it unlinked them. */
#pragma once

/*
 * Unlink the sockets below `dir` whose names begin with `prefix` and that no
 * process holds any more. Sockets in use do not notice. Errors are ignored: what stays is
 * tried again next time.
 */
void stale_sockets_remove(const char *dir, const char *prefix);
