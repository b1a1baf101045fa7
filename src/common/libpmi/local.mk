# SPDX-License-Identifier: BSD-3-Clause
# Texts and messages, and srun's half of PMI: needs libcoll, libutil and the C library only.
noinst_LTLIBRARIES += libpmi.la
libpmi_la_SOURCES = $(files_src_common_libpmi)
libpmi_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden
