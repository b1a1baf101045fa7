/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A directory of the step's user below one that only root may write: the user could
 * neither make it nor remove it. Files of the user in it are not trusted: nothing is
 * followed when it is removed. C library only; blocks for the file system.
 */
#pragma once

#include <sys/types.h>

#define USER_DIR_ENTRIES_MAX 100000 /* removed in one call */
#define USER_DIR_STALE_MAX 10000    /* ... of all directories that others have left */

/*
 * Make it, mode 0700; one that a killed process has left is removed before. A
 * descriptor, by whose lock others see that it is in use, or a negative errno: -EBUSY:
 * another process uses it.
 */
int user_dir_make(const char *path, uid_t uid, gid_t gid);
/*
 * Remove it with all that is in it, and close the descriptor. 0; -EMFILE, -ENOTEMPTY
 * or other negative errno: something is left, for user_dir_remove_stale.
 */
int user_dir_remove(int fd, const char *path);
/*
 * Remove it in place of its maker, who has been killed, when nobody else uses it any
 * more: waits for that. Not there: nothing.
 */
void user_dir_remove_orphan(const char *path);
/*
 * Remove those beside it, of names that begin alike, which nobody uses any more. Stops
 * after USER_DIR_STALE_MAX entries: the rest is for the next call. Another user's files
 * are among them, so nobody should wait for that.
 */
void user_dir_remove_stale(const char *path, const char *prefix);
