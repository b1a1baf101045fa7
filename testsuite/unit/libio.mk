# SPDX-License-Identifier: BSD-3-Clause
UNIT_LIBS_IO = libio.la libutil.la $(SODIUM_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)
UNIT_CPPFLAGS_IO = $(UNIT_CPPFLAGS) $(LIBUV_CFLAGS) -D_GNU_SOURCE

unit_tests += testsuite/unit/secret-test testsuite/unit/frames-test \
	testsuite/unit/handshake-test testsuite/unit/stream-test \
	testsuite/unit/link-test testsuite/unit/strangers-test \
	testsuite/unit/stopped-test testsuite/unit/thread-test

testsuite_unit_stopped_test_SOURCES = testsuite/unit/stopped-test.c
testsuite_unit_stopped_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_stopped_test_LDADD = $(UNIT_LIBS_IO)

testsuite_unit_strangers_test_SOURCES = testsuite/unit/strangers-test.c
testsuite_unit_strangers_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_strangers_test_LDADD = $(UNIT_LIBS_IO)

testsuite_unit_thread_test_SOURCES = testsuite/unit/thread-test.c
testsuite_unit_thread_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_thread_test_LDADD = $(UNIT_LIBS_IO)

testsuite_unit_secret_test_SOURCES = testsuite/unit/secret-test.c
testsuite_unit_secret_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_secret_test_LDADD = $(UNIT_LIBS_IO)

testsuite_unit_frames_test_SOURCES = testsuite/unit/frames-test.c
testsuite_unit_frames_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_frames_test_LDADD = $(UNIT_LIBS_IO)

testsuite_unit_handshake_test_SOURCES = testsuite/unit/handshake-test.c
testsuite_unit_handshake_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_handshake_test_LDADD = $(UNIT_LIBS_IO)

testsuite_unit_stream_test_SOURCES = testsuite/unit/stream-test.c
testsuite_unit_stream_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_stream_test_LDADD = $(UNIT_LIBS_IO)

testsuite_unit_link_test_SOURCES = testsuite/unit/link-test.c
testsuite_unit_link_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_link_test_LDADD = $(UNIT_LIBS_IO)

# Agents need the engine, too.
UNIT_LIBS_AGENT = libio.la libpmi.la libshm.la libcoll.la libutil.la \
	$(SODIUM_LIBS) $(XXHASH_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)

unit_tests += testsuite/unit/agent-test

testsuite_unit_agent_test_SOURCES = testsuite/unit/agent-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-absent-test
testsuite_unit_agent_absent_test_SOURCES = testsuite/unit/agent-absent-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_absent_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_absent_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-control-test
testsuite_unit_agent_control_test_SOURCES = \
	testsuite/unit/agent-control-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_control_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_control_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-idle-test
testsuite_unit_agent_idle_test_SOURCES = testsuite/unit/agent-idle-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_idle_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_idle_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-state-test
testsuite_unit_agent_state_test_SOURCES = testsuite/unit/agent-state-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_state_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_state_test_LDADD = $(UNIT_LIBS_AGENT)
