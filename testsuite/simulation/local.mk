# SPDX-License-Identifier: BSD-3-Clause
# Deterministic simulation of a step. What the linked objects call of the system and
# of libuv is defined here, by --wrap and by leaving libuv out.
simulation_wrapped = accept4 bind calloc clock_gettime close connect dup2 \
	epoll_create1 epoll_ctl epoll_wait eventfd eventfd_read eventfd_write \
	exit fallocate fchmod fcntl free fstat ftruncate getenv getpeername \
	getpid getrandom getsockname getsockopt kill listen malloc memfd_create mmap \
	munmap open poll preadv2 process_is_stopped pthread_clockjoin_np \
	pthread_cond_broadcast pthread_cond_destroy pthread_cond_init \
	pthread_cond_wait pthread_create pthread_detach pthread_join \
	pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock \
	pthread_mutex_unlock randombytes_buf read realloc recv recvmmsg \
	recvmsg send sendmsg setsockopt shutdown socket socketpair strdup \
	strndup syscall waitpid write writev

check_PROGRAMS += testsuite/simulation/simulate
testsuite_simulation_simulate_SOURCES = \
	testsuite/simulation/client.h \
	testsuite/simulation/files.c testsuite/simulation/files.h \
	testsuite/simulation/memory.c testsuite/simulation/memory.h \
	testsuite/simulation/node.c \
	testsuite/simulation/plan.c testsuite/simulation/plan.h \
	testsuite/simulation/rank.c \
	testsuite/simulation/simulate.c \
	testsuite/simulation/socket_connect.c \
	testsuite/simulation/socket_io.c \
	testsuite/simulation/sockets.c testsuite/simulation/sockets.h \
	testsuite/simulation/sockets_internal.h \
	testsuite/simulation/srun.c \
	testsuite/simulation/step.c testsuite/simulation/step.h \
	testsuite/simulation/threads.c testsuite/simulation/threads.h \
	testsuite/simulation/uv.c \
	testsuite/simulation/world.c testsuite/simulation/world.h
testsuite_simulation_simulate_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-I$(srcdir)/contrib/libpmi2x $(LIBUV_CFLAGS) $(SODIUM_CFLAGS)
testsuite_simulation_simulate_LDFLAGS = $(AM_LDFLAGS) -no-install \
	$(simulation_wrapped:%=-Wl,--wrap=%)
testsuite_simulation_simulate_LDADD = testsuite/simulation/client-library.o \
	libsupervisor.la libagent.la libsrun.la libio.la libpmi.la libshm.la libcoll.la \
	libutil.la $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

# The client library has names in common with the agent's; it keeps them for itself.
check_LTLIBRARIES += testsuite/simulation/libclient_state.la
testsuite_simulation_libclient_state_la_SOURCES = testsuite/simulation/client.c
testsuite_simulation_libclient_state_la_CPPFLAGS = \
	$(testsuite_simulation_simulate_CPPFLAGS)
simulation_client = testsuite/simulation/libclient_state.la \
	contrib/libpmi2x/libclient.la
testsuite/simulation/client-library.o: $(simulation_client)
	$(AM_V_GEN)$(LD) -r -o $@.tmp -u client_switch -u PMI_Init -u PMI2_Init \
		-u PMIX_Wait \
		`echo $(simulation_client) | sed 's|\([a-z_]*\)\.la|.libs/\1.a|g'`
	$(AM_V_at)$(OBJCOPY) -w -G 'PMI*' -G client_switch $@.tmp $@
	$(AM_V_at)rm -f $@.tmp
CLEANFILES += testsuite/simulation/client-library.o

dist_check_SCRIPTS += testsuite/simulation/simulation-test.sh
TESTS += testsuite/simulation/simulation-test.sh
EXTRA_DIST += testsuite/simulation/run

# Some minutes: make check-simulation; with SEEDS=2000 FIRST_SEED=N others.
SEEDS = 100000
FIRST_SEED = 1
check-simulation: testsuite/simulation/simulate
	$(AM_V_at)$(srcdir)/testsuite/simulation/run $(SEEDS) $(FIRST_SEED)
.PHONY: check-simulation
