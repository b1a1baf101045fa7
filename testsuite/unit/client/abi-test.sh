#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libpmi2x has what programs need that were linked with an earlier release: symbols, their
# versions, and the types of what they take and hold. doc/releases.md says how a
# reference is made.
: "${srcdir:=.}"
lib=contrib/libpmi2x/.libs/libpmi2x.so.0

skip() {
	echo "SKIP: $*"
	exit 77
}

command -v abidiff >/dev/null || skip "no abidiff here (package abigail-tools)"
[ -e "$lib" ] || skip "$lib is not built as a shared library"
[ "$(uname -m)" = x86_64 ] || skip "the references are of x86_64"
readelf -S "$lib" | grep -q '\.debug_info' || skip "$lib has no debug information"
! readelf -d "$lib" | grep -q 'NEEDED.*san\.so' || skip "of a build without sanitizers"

# The reference of this very version, which is being made, has all that there is.
version=$(sed -n 's/^AC_INIT(\[pmi2x\], \[\([^]]*\)\].*/\1/p' "$srcdir/configure.ac")
status=0
for reference in "$srcdir"/testsuite/abi/libpmi2x-*.abi; do
	added=--no-added-syms
	[ "${reference##*/}" != "libpmi2x-$version.abi" ] || added=
	abidiff $added "$reference" "$lib" || {
		echo "not what ${reference##*/} has; doc/releases.md says how to write it"
		status=1
	}
done
exit $status
