/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a program has inherited and knows nothing of. */
#ifndef PMI2X_DVM_INHERITED_FDS_H
#define PMI2X_DVM_INHERITED_FDS_H

/* All from `first` on are closed when another program is executed. */
void inherited_fds_forbid(int first);
/* Close them now. In a child of fork(2), too. */
void inherited_fds_close(int first);

#endif
