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

check_PROGRAMS += testsuite/dst/simulate
testsuite_dst_simulate_SOURCES = $(files_testsuite_dst)
testsuite_dst_simulate_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE \
	-I$(srcdir)/contrib/libpmi2x $(LIBUV_CFLAGS) $(SODIUM_CFLAGS)
testsuite_dst_simulate_LDFLAGS = $(AM_LDFLAGS) -no-install \
	$(simulation_wrapped:%=-Wl,--wrap=%)
testsuite_dst_simulate_LDADD = testsuite/dst/client-library.o \
	libsupervisor.la libagent.la libsrun.la libio.la libengine.la libpmi.la libshm.la libcoll.la \
	libutil.la $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

# The client library has names in common with the agent's; it keeps them for itself.
check_LTLIBRARIES += testsuite/dst/libclient_state.la
testsuite_dst_libclient_state_la_SOURCES = testsuite/dst/client.c
testsuite_dst_libclient_state_la_CPPFLAGS = \
	$(testsuite_dst_simulate_CPPFLAGS)
simulation_client = testsuite/dst/libclient_state.la \
	contrib/libpmi2x/libclient.la
testsuite/dst/client-library.o: $(simulation_client)
	$(AM_V_GEN)$(LD) -r -o $@.tmp -u client_switch -u PMI_Init -u PMI2_Init \
		-u PMIX_Wait -u PMIX_Sync_open \
		`echo $(simulation_client) | sed 's|\([a-z_]*\)\.la|.libs/\1.a|g'`
	$(AM_V_at)$(OBJCOPY) -w -G 'PMI*' -G client_switch $@.tmp $@
	$(AM_V_at)rm -f $@.tmp
CLEANFILES += testsuite/dst/client-library.o

dist_check_SCRIPTS += testsuite/dst/simulation-test.sh
TESTS += testsuite/dst/simulation-test.sh
EXTRA_DIST += testsuite/dst/run

# Some minutes: make check-simulation; with SEEDS=2000 FIRST_SEED=N others.
SEEDS = 100000
FIRST_SEED = 1
check-simulation: testsuite/dst/simulate testsuite/unit/store/history-test
	$(AM_V_at)$(srcdir)/testsuite/dst/run $(SEEDS) $(FIRST_SEED)
	$(AM_V_at)HISTORY_RUNS=$(SEEDS) HISTORY_SEED=$(FIRST_SEED) testsuite/unit/store/history-test
.PHONY: check-simulation
