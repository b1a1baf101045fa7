#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The client libraries export those names of libpmi2x.map that their version scripts name
# or that match their patterns, no more and no less, and need nothing but the C library.
: "${NM:=nm}"
: "${srcdir:=.}"
status=0

fail() {
	echo "$1"
	status=1
}

check() { # name
	lib=contrib/libpmi2x/.libs/lib$1.so.0
	maps=$srcdir/contrib/libpmi2x
	[ -e "$lib" ] || { echo "$lib is not built as a shared library"; exit 77; }
	sed -n 's/\*/.*/; s/^	\(PMI.*\);$/\1/p' "$maps/lib$1.map" >client-exports.names
	sed -n 's/^	\(PMI.*\);$/\1/p' "$maps/libpmi2x.map" |
		grep -xf client-exports.names | sort >client-exports.want
	# Without versions, and the versions themselves (type A): check-rules has those.
	$NM -D --defined-only "$lib" |
		awk '$(NF - 1) != "A" { sub(/@.*/, "", $NF); print $NF }' |
		sort >client-exports.got
	diff client-exports.want client-exports.got >client-exports.diff ||
		fail "$lib: $(cat client-exports.diff)"
	objdump -p "$lib" | awk '/NEEDED/ { print $2 }' |
		grep -Ev '^(libc|ld-linux.*|lib[atu]b?san)\.so' &&
		fail "$lib needs more than the C library"
	objdump -p "$lib" | grep -q "SONAME *lib$1.so.0" ||
		fail "$lib has another soname"
}

check pmi2x
check pmi2
check pmi
rm -f client-exports.names client-exports.want client-exports.got client-exports.diff
exit $status
