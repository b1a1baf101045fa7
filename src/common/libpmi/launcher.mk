# SPDX-License-Identifier: BSD-3-Clause
# srun's half of the engine, and what both halves share about spawns.
libpmi_launcher_sources = \
	src/common/libpmi/control.c src/common/libpmi/control.h \
	src/common/libpmi/launcher.c src/common/libpmi/launcher.h \
	src/common/libpmi/mapping.c src/common/libpmi/mapping.h \
	src/common/libpmi/spawn.c src/common/libpmi/spawn.h \
	src/common/libpmi/spawn-parse.c
