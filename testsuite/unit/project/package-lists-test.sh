#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each program and each man page that is installed is in one of Debian's packages: else they
# cannot be built. (Those of RPM take whole directories.)
set -eu
srcdir=${srcdir:-.}
lists=$(cat "$srcdir"/debian/*.install)
unlisted=

is_listed() { # FILE
	for pattern in $lists; do
		case $1 in
		$pattern | $pattern/*) return ;;
		esac
	done
	false
}

for file in $(MAKEFLAGS= make -s list-installed); do
	is_listed "$file" || unlisted="$unlisted $file"
done
[ -z "$unlisted" ] || {
	echo "package-lists-test: in no debian/*.install:$unlisted" >&2
	exit 1
}
