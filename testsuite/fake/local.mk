# SPDX-License-Identifier: BSD-3-Clause
# Installed as well: pmi2x bench launch emulates with it more nodes than slurmds fit.
pkglibexec_PROGRAMS += testsuite/fake/fake-server
testsuite_fake_fake_server_SOURCES = \
	testsuite/fake/fake.h \
	testsuite/fake/fake-srun.c \
	testsuite/fake/fake-layout.c \
	testsuite/fake/fake-node.c \
	testsuite/fake/fake-server.c
testsuite_fake_fake_server_CPPFLAGS = -D_GNU_SOURCE $(AM_CPPFLAGS) \
	$(LIBUV_CFLAGS)
testsuite_fake_fake_server_LDADD = libsupervisor.la libagent.la libsrun.la libio.la \
	libengine.la libpmi.la libshm.la libcoll.la libutil.la $(LIBUV_LIBS) $(SODIUM_LIBS) $(XXHASH_LIBS) -lpthread

check_PROGRAMS += testsuite/fake/exercise
testsuite_fake_exercise_SOURCES = testsuite/fake/exercise.c
testsuite_fake_exercise_LDADD = contrib/libpmi2x/libpmi2x.la
testsuite_fake_exercise_LDFLAGS = $(AM_LDFLAGS) -no-install

check_PROGRAMS += testsuite/fake/agent-memory
testsuite_fake_agent_memory_SOURCES = testsuite/fake/agent-memory.c \
	contrib/bench/agent_process.c contrib/bench/agent_process.h
testsuite_fake_agent_memory_LDADD = contrib/libpmi2x/libpmi2x.la
testsuite_fake_agent_memory_LDFLAGS = $(AM_LDFLAGS) -no-install

check_PROGRAMS += testsuite/fake/ring-exercise
ring_exercise_sources = testsuite/fake/ring-exercise.c \
	testsuite/fake/ring-exercise.h testsuite/fake/ring-fault.c
testsuite_fake_ring_exercise_SOURCES = $(ring_exercise_sources)
testsuite_fake_ring_exercise_CPPFLAGS = $(AM_CPPFLAGS) \
	-I$(srcdir)/contrib/allgather/include
testsuite_fake_ring_exercise_LDADD = contrib/allgather/libpmi2x-allgather.la \
	contrib/libpmi2x/libpmi2x.la
testsuite_fake_ring_exercise_LDFLAGS = $(AM_LDFLAGS) -no-install

ring_tests = testsuite/fake/ring-test.sh testsuite/fake/port-down-test.sh
dist_check_SCRIPTS += $(ring_tests)
EXTRA_DIST += testsuite/fake/ring-model testsuite/fake/ring-steps.sh
TESTS += $(ring_tests)
dist_check_SCRIPTS += testsuite/fake/fake-test.sh testsuite/check-rules
TESTS += testsuite/fake/fake-test.sh testsuite/check-rules
