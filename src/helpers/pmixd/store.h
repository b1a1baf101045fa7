/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of shared memory in which clients of libpmix 4 find what the server knows:
 * PMIXD_GDS_DS21. libpmix makes them, in a directory whose name only it knows; they are
 * removed with `dir`, that of the server.
 */
#pragma once

/*
 * Give them the name that clients know beforehand. Only once they are complete: who looks
 * too early shall find nothing, and not a part. 0 or a negative errno.
 */
int store_show(const char *dir);

/*
 * In libpmix's thread, which alone writes into them: give back the memory of what is
 * still zero at their ends, which is most of 8 MiB. libpmix has written the zeros. The
 * space in the file system stays theirs. Where that cannot be nothing happens.
 */
void store_trim(const char *dir);
