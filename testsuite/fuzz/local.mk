# SPDX-License-Identifier: BSD-3-Clause
# Fuzz targets. Built by "make check" they replay the corpus; "make fuzz" builds
# them again with clang's libFuzzer and lets it look for more.
fuzz_programs = testsuite/fuzz/client-fuzz \
	testsuite/fuzz/coll-fuzz \
	testsuite/fuzz/frames-fuzz \
	testsuite/fuzz/handshake-fuzz \
	testsuite/fuzz/image-fuzz \
	testsuite/fuzz/launcher-fuzz \
	testsuite/fuzz/layout-fuzz \
	testsuite/fuzz/messages-fuzz \
	testsuite/fuzz/pmix-fuzz \
	testsuite/fuzz/records-fuzz \
	testsuite/fuzz/region-fuzz \
	testsuite/fuzz/scenario-fuzz \
	testsuite/fuzz/server-node-fuzz \
	testsuite/fuzz/server-fuzz \
	testsuite/fuzz/spawn-fuzz \
	testsuite/fuzz/status-fuzz \
	testsuite/fuzz/setup-fuzz \
	testsuite/fuzz/connect-back-fuzz \
	testsuite/fuzz/text-fuzz \
	testsuite/fuzz/wire1-fuzz \
	testsuite/fuzz/wire2-fuzz
if HAVE_JANSSON
fuzz_programs += testsuite/fuzz/dvm-fuzz testsuite/fuzz/journal-fuzz
endif
FUZZ_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
fuzz_driver = testsuite/fuzz/fuzz.h testsuite/fuzz/fuzz-message.h \
	testsuite/fuzz/fuzz-pmi.h
if FUZZING
fuzz_link = $(AM_LDFLAGS) -fsanitize=fuzzer
else
fuzz_link = $(AM_LDFLAGS)
fuzz_driver += testsuite/fuzz/replay.c
endif

testsuite_fuzz_wire1_fuzz_SOURCES = testsuite/fuzz/wire1-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_wire1_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_wire1_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_wire1_fuzz_LDADD = libpmi.la libutil.la

testsuite_fuzz_wire2_fuzz_SOURCES = testsuite/fuzz/wire2-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_wire2_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_wire2_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_wire2_fuzz_LDADD = libpmi.la libutil.la

testsuite_fuzz_dvm_fuzz_SOURCES = testsuite/fuzz/dvm-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_dvm_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_dvm_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_dvm_fuzz_LDADD = libdvm.la libutil.la $(JANSSON_LIBS)

testsuite_fuzz_journal_fuzz_SOURCES = testsuite/fuzz/journal-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_journal_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_journal_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_journal_fuzz_LDADD = libdvm.la libutil.la $(JANSSON_LIBS)

testsuite_fuzz_spawn_fuzz_SOURCES = testsuite/fuzz/spawn-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_spawn_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_spawn_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_spawn_fuzz_LDADD = libpmi.la libutil.la

testsuite_fuzz_status_fuzz_SOURCES = testsuite/fuzz/status-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_status_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_status_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_status_fuzz_LDADD = libpmi.la libcoll.la libutil.la

testsuite_fuzz_messages_fuzz_SOURCES = testsuite/fuzz/messages-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_messages_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_messages_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_messages_fuzz_LDADD = libpmi.la libcoll.la libutil.la

testsuite_fuzz_frames_fuzz_SOURCES = testsuite/fuzz/frames-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_frames_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_frames_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS) $(XXHASH_CFLAGS)
testsuite_fuzz_frames_fuzz_LDADD = libio.la libutil.la $(XXHASH_LIBS)

testsuite_fuzz_handshake_fuzz_SOURCES = testsuite/fuzz/handshake-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_handshake_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_handshake_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS) $(SODIUM_CFLAGS)
testsuite_fuzz_handshake_fuzz_LDADD = libio.la libutil.la $(SODIUM_LIBS)

testsuite_fuzz_setup_fuzz_SOURCES = testsuite/fuzz/setup-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_setup_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_setup_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_setup_fuzz_LDADD = libagent_nodeps.la libconfine_nodeps.la libio_nodeps.la libcoll.la \
	libutil.la

testsuite_fuzz_connect_back_fuzz_SOURCES = testsuite/fuzz/connect-back-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_connect_back_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_connect_back_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS) $(LIBUV_CFLAGS)
testsuite_fuzz_connect_back_fuzz_LDADD = libagent.la libio.la libpmi.la libshm.la \
	libcoll.la libutil.la $(SODIUM_LIBS) $(XXHASH_LIBS) $(LIBUV_LIBS)

testsuite_fuzz_coll_fuzz_SOURCES = testsuite/fuzz/coll-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_coll_fuzz_LDFLAGS = $(fuzz_link) -Wl,--wrap=malloc
testsuite_fuzz_coll_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_coll_fuzz_LDADD = libcoll.la libutil.la

testsuite_fuzz_records_fuzz_SOURCES = testsuite/fuzz/records-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_records_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_records_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_records_fuzz_LDADD = libshm.la libutil.la

testsuite_fuzz_image_fuzz_SOURCES = testsuite/fuzz/image-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_image_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_image_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_image_fuzz_LDADD = libshm.la libutil.la

testsuite_fuzz_region_fuzz_SOURCES = testsuite/fuzz/region-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_region_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_region_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_region_fuzz_LDADD = libshm.la libutil.la

testsuite_fuzz_text_fuzz_SOURCES = testsuite/fuzz/text-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_text_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_text_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS) -I$(top_srcdir)/contrib/libpmi2x
testsuite_fuzz_text_fuzz_LDADD = contrib/libpmi2x/libclient.la

testsuite_fuzz_layout_fuzz_SOURCES = testsuite/fuzz/layout-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_layout_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_layout_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS) -I$(top_srcdir)/contrib/libpmi2x
testsuite_fuzz_layout_fuzz_LDADD = libpmi.la libcoll.la contrib/libpmi2x/libclient.la libutil.la

testsuite_fuzz_launcher_fuzz_SOURCES = testsuite/fuzz/launcher-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_launcher_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_launcher_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_launcher_fuzz_LDADD = libpmi.la libutil.la

testsuite_fuzz_server_fuzz_SOURCES = testsuite/fuzz/server-fuzz.c \
	testsuite/unit/engine/net.c testsuite/unit/engine/net.h \
	$(fuzz_driver)
testsuite_fuzz_server_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_server_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS) $(CMOCKA_CFLAGS) -I$(srcdir)/testsuite/unit
testsuite_fuzz_server_fuzz_LDADD = libpmi.la libshm.la libcoll.la libutil.la $(XXHASH_LIBS) $(CMOCKA_LIBS)

testsuite_fuzz_server_node_fuzz_SOURCES = testsuite/fuzz/server-node-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_server_node_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_server_node_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_server_node_fuzz_LDADD = libpmi.la libshm.la libcoll.la libutil.la $(XXHASH_LIBS)

testsuite_fuzz_pmix_fuzz_SOURCES = testsuite/fuzz/pmix-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_pmix_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_pmix_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_pmix_fuzz_LDADD = libpmi.la libshm.la libcoll.la libutil.la $(XXHASH_LIBS)

testsuite_fuzz_scenario_fuzz_SOURCES = testsuite/fuzz/scenario-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_scenario_fuzz_LDFLAGS = $(fuzz_link)
testsuite_fuzz_scenario_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS) -I$(top_srcdir)/contrib/sim
testsuite_fuzz_scenario_fuzz_LDADD = $(SIM_LIBS)

testsuite_fuzz_client_fuzz_SOURCES = testsuite/fuzz/client-fuzz.c \
	$(fuzz_driver)
testsuite_fuzz_client_fuzz_LDFLAGS = $(fuzz_link) -Wl,--wrap=recvmsg
testsuite_fuzz_client_fuzz_CPPFLAGS = $(FUZZ_CPPFLAGS)
testsuite_fuzz_client_fuzz_CFLAGS = $(AM_CFLAGS) -pthread
testsuite_fuzz_client_fuzz_LDADD = contrib/libpmi2x/libclient.la libshm.la libutil.la

if HAVE_CMOCKA
check_PROGRAMS += $(fuzz_programs)
dist_check_SCRIPTS += testsuite/fuzz/replay-test.sh
TESTS += testsuite/fuzz/replay-test.sh
endif
fuzz-programs: $(fuzz_programs)
.PHONY: fuzz fuzz-programs

EXTRA_DIST += testsuite/fuzz/run testsuite/fuzz/make-seeds \
	testsuite/fuzz/corpus

# Seconds of fuzzing for each target; its seed, 0 for another one each time.
FUZZ_SECONDS = 60
FUZZ_SEED = 0
fuzz:
	$(AM_V_at)$(srcdir)/testsuite/fuzz/run --build build-fuzz \
		--seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
