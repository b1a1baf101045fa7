# SPDX-License-Identifier: BSD-3-Clause
# srun's end: the hub and the sruns that it starts.
libio_hub_sources = \
	src/common/libio/channel.c src/common/libio/channel.h \
	src/common/libio/hub.c src/common/libio/hub.h \
	src/common/libio/hub_internal.h src/common/libio/hub_live.c \
	src/common/libio/hub_spawn.c \
	src/common/libio/live.c src/common/libio/live.h \
	src/common/libio/spawned.c src/common/libio/spawned.h
