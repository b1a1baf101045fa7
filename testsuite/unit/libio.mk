# SPDX-License-Identifier: BSD-3-Clause
UNIT_LIBS_IO = libio.la libutil.la $(SODIUM_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)
UNIT_CPPFLAGS_IO = $(UNIT_CPPFLAGS) $(LIBUV_CFLAGS) -D_GNU_SOURCE

unit_tests += testsuite/unit/secret-test testsuite/unit/frames-test \
	testsuite/unit/handshake-test testsuite/unit/stream-test \
	testsuite/unit/link-test testsuite/unit/refusals-test \
	testsuite/unit/stopped-test testsuite/unit/thread-test

unit_tests += testsuite/unit/owner-test
testsuite_unit_owner_test_SOURCES = testsuite/unit/owner-test.c
testsuite_unit_owner_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_owner_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recv
testsuite_unit_owner_test_LDADD = libio_nodeps.la $(CMOCKA_LIBS)

testsuite_unit_stopped_test_SOURCES = testsuite/unit/stopped-test.c
testsuite_unit_stopped_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_stopped_test_LDADD = $(UNIT_LIBS_AGENT)

testsuite_unit_refusals_test_SOURCES = testsuite/unit/refusals-test.c
testsuite_unit_refusals_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_refusals_test_LDADD = $(UNIT_LIBS_IO)

testsuite_unit_thread_test_SOURCES = testsuite/unit/thread-test.c
testsuite_unit_thread_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_thread_test_LDADD = $(UNIT_LIBS_IO)

# The same for C libraries without pthread_clockjoin_np.
unit_tests += testsuite/unit/thread-old-test
testsuite_unit_thread_old_test_SOURCES = testsuite/unit/thread-test.c \
	src/common/libio/thread.c
testsuite_unit_thread_old_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO) \
	-DTHREAD_JOIN_BY_TRYING
testsuite_unit_thread_old_test_LDADD = $(UNIT_LIBS_IO)

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

testsuite_unit_link_test_SOURCES = testsuite/unit/link-test.c \
	testsuite/unit/loopback.h
testsuite_unit_link_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_link_test_LDADD = $(UNIT_LIBS_IO)

# Agents need the engine, too.
UNIT_LIBS_AGENT = libsupervisor.la libagent.la libsrun.la libio.la libpmi.la libshm.la \
	libcoll.la libutil.la \
	$(SODIUM_LIBS) $(XXHASH_LIBS) $(LIBUV_LIBS) $(CMOCKA_LIBS)

unit_tests += testsuite/unit/agent-test

testsuite_unit_agent_test_SOURCES = testsuite/unit/agent-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-hostile-test
testsuite_unit_agent_hostile_test_SOURCES = testsuite/unit/agent-hostile-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_hostile_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_hostile_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-end-test
testsuite_unit_agent_end_test_SOURCES = testsuite/unit/agent-end-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_end_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_end_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-missing-test
testsuite_unit_agent_missing_test_SOURCES = testsuite/unit/agent-missing-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_missing_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_missing_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/child-test
testsuite_unit_child_test_SOURCES = testsuite/unit/child-test.c
testsuite_unit_child_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_child_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/starter-wait-test
testsuite_unit_starter_wait_test_SOURCES = testsuite/unit/starter-wait-test.c
testsuite_unit_starter_wait_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_starter_wait_test_LDADD = $(UNIT_LIBS_AGENT)

# With little patience.
unit_tests += testsuite/unit/starter-stuck-test
testsuite_unit_starter_stuck_test_SOURCES = testsuite/unit/starter-stuck-test.c \
	src/supervisor/supervisor.c
testsuite_unit_starter_stuck_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO) \
	-DSTARTER_MARGIN_MS=50
testsuite_unit_starter_stuck_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/pmix-env-test testsuite/unit/pmix-store-test \
	testsuite/unit/client-hello-test
testsuite_unit_client_hello_test_SOURCES = testsuite/unit/client-hello-test.c \
	src/helpers/pmixd/client_hello.c
testsuite_unit_client_hello_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_client_hello_test_LDADD = $(CMOCKA_LIBS)
if HAVE_PMIXD
unit_tests += testsuite/unit/pmixd-clients-test
endif
testsuite_unit_pmixd_clients_test_SOURCES = testsuite/unit/pmixd-clients-test.c \
	src/helpers/pmixd/client_hello.c src/helpers/pmixd/clients.c src/helpers/pmixd/server_session.c
testsuite_unit_pmixd_clients_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO) $(PMIX_CFLAGS)
testsuite_unit_pmixd_clients_test_LDADD = libio_nodeps.la libcoll.la libutil.la \
	$(XXHASH_LIBS) $(CMOCKA_LIBS)
testsuite_unit_pmix_env_test_SOURCES = testsuite/unit/pmix-env-test.c \
	src/supervisor/pmix_env.c
testsuite_unit_pmix_env_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_pmix_env_test_LDADD = $(CMOCKA_LIBS)
testsuite_unit_pmix_store_test_SOURCES = testsuite/unit/pmix-store-test.c \
	src/helpers/pmixd/store.c
testsuite_unit_pmix_store_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_pmix_store_test_LDADD = $(CMOCKA_LIBS)

unit_tests += testsuite/unit/starter-helper-test
check_PROGRAMS += testsuite/unit/other-topology
testsuite_unit_starter_helper_test_SOURCES = \
	testsuite/unit/starter-helper-test.c
testsuite_unit_starter_helper_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO) \
	-DOTHER_TOPOLOGY='"$(abs_top_builddir)/testsuite/unit/other-topology"'
testsuite_unit_starter_helper_test_LDADD = $(UNIT_LIBS_AGENT)
testsuite_unit_other_topology_SOURCES = testsuite/unit/other-topology.c
testsuite_unit_other_topology_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_other_topology_LDADD = libagent_nodeps.la libconfine_nodeps.la libio_nodeps.la \
	libpmi_nodeps.la libshm_nodeps.la libcoll.la libutil.la

unit_tests += testsuite/unit/wire-test
EXTRA_DIST += testsuite/unit/wire-reference
testsuite_unit_wire_test_SOURCES = testsuite/unit/wire-test.c
testsuite_unit_wire_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_wire_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=nonce_create
testsuite_unit_wire_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-lookup-test
testsuite_unit_agent_lookup_test_SOURCES = testsuite/unit/agent-lookup-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_lookup_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_lookup_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-control-test
testsuite_unit_agent_control_test_SOURCES = \
	testsuite/unit/agent-control-test.c \
	testsuite/unit/loopback.h testsuite/unit/wrap-memory.h \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_control_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_control_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc \
	-Wl,--wrap=calloc -Wl,--wrap=realloc
testsuite_unit_agent_control_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-idle-test
testsuite_unit_agent_idle_test_SOURCES = testsuite/unit/agent-idle-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_idle_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_idle_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-exit-test
testsuite_unit_agent_exit_test_SOURCES = testsuite/unit/agent-exit-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_exit_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_exit_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-status-test
testsuite_unit_agent_status_test_SOURCES = testsuite/unit/agent-status-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_status_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_status_test_LDADD = $(UNIT_LIBS_AGENT)

# What starts and confines it.
unit_tests += testsuite/unit/setup-test testsuite/unit/starter-hostile-test
testsuite_unit_setup_test_SOURCES = testsuite/unit/setup-test.c
testsuite_unit_setup_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_setup_test_LDADD = libagent_nodeps.la libconfine_nodeps.la libio_nodeps.la libcoll.la \
	libutil.la $(CMOCKA_LIBS)

unit_lingering = testsuite/unit/lingering.c testsuite/unit/lingering.h
unit_tests += testsuite/unit/hang-up-test testsuite/unit/host-out-test \
	testsuite/unit/starter-channel-test
testsuite_unit_hang_up_test_SOURCES = testsuite/unit/hang-up-test.c $(unit_lingering)
testsuite_unit_hang_up_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_hang_up_test_LDADD = libconfine_nodeps.la libio_nodeps.la libutil.la \
	$(CMOCKA_LIBS)

testsuite_unit_host_out_test_SOURCES = testsuite/unit/host-out-test.c
testsuite_unit_host_out_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_host_out_test_LDADD = libconfine_nodeps.la libio_nodeps.la libutil.la \
	$(CMOCKA_LIBS)

testsuite_unit_starter_channel_test_SOURCES = testsuite/unit/starter-channel-test.c \
	$(unit_lingering)
testsuite_unit_starter_channel_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_starter_channel_test_LDADD = $(UNIT_LIBS_AGENT)

testsuite_unit_starter_hostile_test_SOURCES = \
	testsuite/unit/starter-hostile-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_starter_hostile_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_starter_hostile_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/leaf-test testsuite/unit/confine-test \
	testsuite/unit/filter-test testsuite/unit/crash-test
unit_tests += testsuite/unit/knock-test testsuite/unit/user-dir-test
testsuite_unit_knock_test_SOURCES = testsuite/unit/knock-test.c
testsuite_unit_knock_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_knock_test_LDADD = libsupervisor.la libio.la $(CMOCKA_LIBS)
testsuite_unit_user_dir_test_SOURCES = testsuite/unit/user-dir-test.c
testsuite_unit_user_dir_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_user_dir_test_LDADD = libsupervisor.la $(CMOCKA_LIBS)
testsuite_unit_leaf_test_SOURCES = testsuite/unit/leaf-test.c
testsuite_unit_leaf_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_leaf_test_LDADD = libsupervisor.la $(CMOCKA_LIBS)

testsuite_unit_crash_test_SOURCES = testsuite/unit/crash-test.c
testsuite_unit_crash_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_crash_test_LDADD = $(UNIT_LIBS_AGENT)

unit_confined = testsuite/unit/confined.c testsuite/unit/confined.h
testsuite_unit_confine_test_SOURCES = testsuite/unit/confine-test.c \
	$(unit_confined)
testsuite_unit_confine_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_confine_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/foreign-test
testsuite_unit_foreign_test_SOURCES = testsuite/unit/foreign-test.c
testsuite_unit_foreign_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_foreign_test_LDADD = libconfine.la $(CMOCKA_LIBS)

testsuite_unit_filter_test_SOURCES = testsuite/unit/filter-test.c \
	$(unit_confined)
testsuite_unit_filter_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_filter_test_LDADD = $(UNIT_LIBS_AGENT)

unit_tests += testsuite/unit/agent-pmix-test
testsuite_unit_agent_pmix_test_SOURCES = testsuite/unit/agent-pmix-test.c \
	testsuite/unit/agent-cluster.c testsuite/unit/agent-cluster.h
testsuite_unit_agent_pmix_test_CPPFLAGS = $(UNIT_CPPFLAGS_IO)
testsuite_unit_agent_pmix_test_LDADD = $(UNIT_LIBS_AGENT)
