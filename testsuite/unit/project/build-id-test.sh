#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The identity of a build follows from the sources of what speaks a protocol, wherever
# they lie, and from all of them.
set -eu
srcdir=${srcdir:-.}
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

fail() {
	echo "build-id-test: $*" >&2
	exit 1
}

make_says() {
	MAKEFLAGS='' ${MAKE:-make} -s "$@"
}

(cd "$srcdir" && find src contrib/libpmi2x -name '*.[ch]' | tar -cf - -T -) |
	tar -C "$copy" -xf -
here=$(cut -d '"' -f 2 pmi2x-build.h)
case $here in
*-"$(make_says build-id FROM="$copy")") ;;
*) fail "$here is not that of a copy" ;;
esac

# A change is another build, and all files count.
echo >>"$copy/src/common/libio/frames.c"
case $here in
*-"$(make_says build-id FROM="$copy")") fail "a change does not count" ;;
esac
make_says build-id-sources >"$copy/counted"
for file in $(cd "$srcdir" && ls src/common/lib*/*.[ch] \
	src/plugins/mpi/pmi2x/*.[ch] contrib/libpmi2x/*.[ch]); do
	grep -qx "$file" "$copy/counted" || fail "$file does not count"
done

# The library says what it is.
grep -aq "pmi2x build $here protocol [0-9]" .libs/libio.a ||
	fail "libio does not say that it is $here"
