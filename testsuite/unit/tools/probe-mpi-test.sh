#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What pmi2x-probe --mpi says of programs: dynamic, static, scripts, damaged ones, with
# real libraries and with ones that only have their names, and of what two ranks speak.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD SLURM_JOB_ID I_MPI_PMI_LIBRARY 2>/dev/null || :
src=${srcdir:-.}
CC=${CC:-gcc}
export PMI2X_PROBE_LAUNCHER="testsuite/fake/fake-server -n2"

fail() {
	echo "probe-mpi-test: $*" >&2
	sed 's/^/  /' "$dir/out" >&2
	exit 1
}

probe() { # STATUS PROGRAM [--run ARGUMENT...]
	want=$1
	shift
	status=0
	src/tools/pmi2x-probe --mpi "$@" >"$dir/out" 2>&1 </dev/null ||
		status=$?
	[ "$status" = "$want" ] || fail "$1: exit status $status, not $want"
}

said() { # PATTERN
	grep -Eq "$1" "$dir/out" || fail "no line like '$1'"
}

# A library that has no more of another than its name, and perhaps a function.
library() { # NAME FUNCTION
	echo "int $2(void) { return 1; }" |
		$CC -shared -fPIC -Wl,-soname,"$1" -o "$dir/lib/$1" -x c -
}

# Leaves a file if it is ever run.
program() { # NAME FLAG...
	name=$1
	shift
	cat >"$dir/$name.c" <<-END
	#include <stdio.h>
	__attribute__((constructor)) static void run(void)
	{
		fclose(fopen("$dir/was-run", "w"));
	}
	int main(void) { return puts($extra) < 0; }
	END
	$CC -o "$dir/$name" "$dir/$name.c" "$@" -Wl,-rpath,'$ORIGIN/lib'
}

mkdir "$dir/lib"
extra='"nothing"'

# ---- found without running it ----

program none
probe 5 "$dir/none"
said '^speaks +no PMI'

program static -static
probe 5 "$dir/static"

extra='"PMI_FD"'
program own-static -static
probe 0 "$dir/own-static"
said '^speaks +PMI-1 \(.*own-static\)'
extra='"nothing"'

library libpmix.so.9 PMIx_Init
program pmix -Wl,--no-as-needed "$dir/lib/libpmix.so.9"
probe 4 "$dir/pmix"
said '^speaks +PMIx \(.*/lib/libpmix.so.9\)'

library libmpi.so.40 ompi_mpi_init
program open-mpi -Wl,--no-as-needed "$dir/lib/libmpi.so.40"
probe 4 "$dir/open-mpi"
said '^MPI library .*/lib/libmpi.so.40 \(Open MPI\)'
extra='"MVAPICH2 Version: %s"' # as in mpi4py
program knows-all -Wl,--no-as-needed "$dir/lib/libmpi.so.40"
probe 4 "$dir/knows-all"
said '^MPI library .*/lib/libmpi.so.40 \(Open MPI\)'
extra='"nothing"'
mkdir "$dir/lib/openmpi"
: >"$dir/lib/openmpi/mca_pmix_s2.so"
probe 0 "$dir/open-mpi"
said 'mca_pmix_s2'

library libpmi.so.9 PMI_Init
program past-us -Wl,--no-as-needed "$dir/lib/libpmi.so.9"
probe 5 "$dir/past-us"
said 'LD_LIBRARY_PATH'

(cd "$dir" && $CC -o relative none.c -Wl,--no-as-needed lib/libpmix.so.9)
relative=$(realpath --relative-to=. "$dir/lib")
LD_LIBRARY_PATH=$relative probe 4 "$dir/relative"
probe 4 "$dir/lib/libpmix.so.9" # a library, which need not be executable

rm "$dir/lib/libpmix.so.9"
probe 1 "$dir/pmix"
said 'libpmix.so.9'
said 'cannot be loaded here'

printf '#!/usr/bin/env  python3\n' >"$dir/script"
chmod +x "$dir/script"
probe 6 "$dir/script"
said 'script .*/usr/bin/env'

probe 1 "$dir/no-such-program"
said 'No such file'
probe 1 "$dir"
head -c 100 "$dir/none" >"$dir/cut"
probe 1 "$dir/cut"
said 'damaged'
printf 'text\n' >"$dir/text"
probe 1 "$dir/text"
said 'not a program'
$CC -c -o "$dir/object" "$dir/none.c"
chmod +x "$dir/object"
probe 1 "$dir/object"
said 'not a program'
mkfifo "$dir/fifo"
chmod +x "$dir/fifo"
cp "$dir/none" "$dir/no-x"
cp "$dir/script" "$dir/no-x-script"
chmod a-x "$dir/no-x" "$dir/no-x-script"
for it in no-x no-x-script fifo; do
	probe 1 "$dir/$it"
	said 'not an executable file'
done
PATH=$dir:$PATH probe 1 lib
said 'No such file'
probe 1 ""
said 'No such file'

printf '#!/bin/sh\n: >"%s"\n' "$dir/was-run" >"$dir/ld-linux.so"
chmod 777 "$dir/ld-linux.so"
program loader -Wl,--dynamic-linker="$dir/ld-linux.so"
probe 1 "$dir/loader"
said "not the system's"
program colours -Wl,--dynamic-linker="$(printf '/ld\033[1m\377')"
probe 1 "$dir/colours"
said 'the loader /ld\?\[1m\? is not'
program audited -Wl,--audit="$dir/lib/libmpi.so.40"
probe 1 "$dir/audited"

PATH=$dir:$PATH probe 5 none
[ ! -e "$dir/was-run" ] || fail "a program was run"

# ---- real clients ----

spoken() { # STATUS PATTERN PROGRAM [ARGUMENT...]
	want_spoken=$2
	program=$3
	status_wanted=$1
	shift 3
	probe "$status_wanted" "$program" --run "$@"
	said "^has spoken +$want_spoken"
}

spoken 0 'PMI-2 \(2 of 2 ranks\)' testsuite/fake/exercise
said '^speaks +PMI-2 \(.*libpmi2x'
spoken 5 'no PMI \(2 of 2' "$dir/none"
[ -e "$dir/was-run" ] || fail "--run has run nothing"
printf '#!/bin/sh\necho "$@"\nexec testsuite/fake/exercise\n' >"$dir/script"
spoken 0 'PMI-2 \(2' "$dir/script" some words
said '^some words$'
probe 1 /bin/false --run
said 'exit code 1'

if command -v mpicc.mpich >/dev/null; then
	mpicc.mpich -o "$dir/hello" "$src/contrib/cluster/mpi-hello.c"
	spoken 0 'PMI-1 \(2 of 2 ranks\)' "$dir/hello"
	said '^MPI library .*libmpi.*\(MPICH\)'
	said '^speaks +PMI-1'
else
	echo "no mpicc.mpich: MPICH is not tried"
fi
