/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that a program has inherited and knows nothing of. */
#pragma once

/* All from `first` on are closed when another program is executed. */
void inherited_fds_forbid(int first);
/* Close them now. In a child of fork(2), too. */
void inherited_fds_close(int first);
