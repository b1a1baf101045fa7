/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of LD_PRELOAD: paths between colons or spaces. */
#pragma once

/* The list (may be NULL) with a path once, behind all others. malloc'ed; NULL: no memory. */
char *preload_list_with(const char *list, const char *path);
/* The list without a path; "" if nothing is left. malloc'ed; NULL: no memory. */
char *preload_list_without(const char *list, const char *path);
