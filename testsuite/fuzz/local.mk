# SPDX-License-Identifier: BSD-3-Clause
# Fuzz targets. Built by "make check" they replay the corpus; "make fuzz" builds
# them again with clang's libFuzzer and lets it look for more.
PROGRAMS_FUZZ =
include testsuite/fuzz/targets.mk
$(srcdir)/testsuite/fuzz/targets.mk: $(srcdir)/testsuite/fuzz/targets \
		$(srcdir)/testsuite/unit/make-stanzas
	$(AM_V_GEN)$(srcdir)/testsuite/unit/make-stanzas fuzz && touch $@

CPPFLAGS_FUZZ = $(AM_CPPFLAGS) -D_GNU_SOURCE $(LIBUV_CFLAGS) $(JANSSON_CFLAGS) \
	-I$(srcdir)/testsuite/unit
CFLAGS_FUZZ = $(AM_CFLAGS) -pthread
LIBS_FUZZ =
if FUZZING
LDFLAGS_FUZZ = $(AM_LDFLAGS) -fsanitize=fuzzer
SOURCES_FUZZ =
else
LDFLAGS_FUZZ = $(AM_LDFLAGS)
SOURCES_FUZZ = testsuite/fuzz/replay.c
endif

if HAVE_CMOCKA
check_PROGRAMS += $(PROGRAMS_FUZZ)
dist_check_SCRIPTS += testsuite/fuzz/replay-test.sh
TESTS += testsuite/fuzz/replay-test.sh
endif
fuzz-programs: $(PROGRAMS_FUZZ)
.PHONY: fuzz fuzz-programs

EXTRA_DIST += testsuite/unit/make-stanzas testsuite/fuzz/targets testsuite/fuzz/run testsuite/fuzz/make-seeds \
	testsuite/fuzz/corpus

# Seconds of fuzzing for each target; its seed, 0 for another one each time.
FUZZ_SECONDS = 60
FUZZ_SEED = 0
fuzz:
	$(AM_V_at)$(srcdir)/testsuite/fuzz/run --build build-fuzz \
		--seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
