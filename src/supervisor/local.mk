# SPDX-License-Identifier: BSD-3-Clause
# What starts the agent of a node, and answers it. The C library only.
noinst_LTLIBRARIES += libsupervisor.la
libsupervisor_la_SOURCES = \
	src/supervisor/child.c src/supervisor/child.h \
	src/supervisor/dormant.c \
	src/supervisor/accept_user.c src/supervisor/accept_user.h \
	src/supervisor/spawn_agent.c \
	src/supervisor/cgroup.c src/supervisor/cgroup.h \
	src/supervisor/mpi_program.c src/supervisor/mpi_program.h \
	src/supervisor/spawn_pmixd.c \
	src/supervisor/pmix_env.c src/supervisor/pmix_env.h \
	src/supervisor/pmixd_process.c src/supervisor/pmixd_process.h \
	src/supervisor/pmix_library.c src/supervisor/pmix_library.h \
	src/supervisor/process_time.c src/supervisor/process_time.h \
	src/supervisor/requests.c \
	src/supervisor/sync_socket.c \
	src/supervisor/supervisor.c src/supervisor/supervisor.h \
	src/supervisor/supervisor_internal.h \
	src/supervisor/spawn_topology.c \
	src/supervisor/user_dir.c src/supervisor/user_dir.h
libsupervisor_la_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-DPMIX_MULTIARCH='"$(shell $(CC) -print-multiarch)"'
libsupervisor_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden -pthread
