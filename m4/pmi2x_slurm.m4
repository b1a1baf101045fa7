# SPDX-License-Identifier: BSD-3-Clause
# PMI2X_SLURM: find the installed Slurm and the source tree that matches it,
# and refuse what would give a plugin that Slurm refuses, or one that sees
# Slurm's records at the wrong offsets.
#
# Sets BUILD_PLUGIN, BUILD_FOR_SLURM (what the plugin needs), SLURM_CPPFLAGS, slurm_plugindir, pmi2x_slurm_summary.

AC_DEFUN([PMI2X_SLURM], [
  AC_ARG_WITH([slurm],
    [AS_HELP_STRING([--without-slurm], [build everything but the Slurm plugin])
AS_HELP_STRING([--with-slurm=PREFIX],
      [where Slurm is installed, when not in a system directory])
AS_HELP_STRING([--with-slurm=source],
      [build the plugin for the source tree of a Slurm that is not installed])
AS_HELP_STRING([--with-slurm=separate],
      [build what the plugin needs, but not the plugin])],
    [], [with_slurm=yes])
  AC_ARG_WITH([slurm-source],
    [AS_HELP_STRING([--with-slurm-source=DIR],
      [source tree of the installed Slurm version (contrib/build/slurm-source gets
       it) @<:@$SLURM_SOURCE or ./slurm-source@:>@])],
    [], [with_slurm_source=])
  AC_ARG_WITH([slurm-plugindir],
    [AS_HELP_STRING([--with-slurm-plugindir=DIR],
      [where mpi_pmi2x.so is installed @<:@LIBDIR/slurm@:>@])],
    [slurm_plugindir=$withval], [slurm_plugindir='${libdir}/slurm'])
  AC_SUBST([slurm_plugindir])
  AC_ARG_VAR([SLURM_SOURCE], [default of --with-slurm-source])
  SLURM_CPPFLAGS=
  SLURMFULL=
  AC_SUBST([SLURMFULL])
  SLURM_CALLS=
  AC_SUBST([SLURM_CALLS])
  SLURM_TREE=
  AC_SUBST([SLURM_TREE])
  AC_SUBST([SLURM_CPPFLAGS])
  build_plugin=no
  pmi2x_slurm_summary="not built (--without-slurm)"
  DISTCHECK_SLURM=--without-slurm
  AC_SUBST([DISTCHECK_SLURM])
  AS_CASE([$with_slurm], [no], [], [separate],
    [pmi2x_slurm_summary="built separately"
     DISTCHECK_SLURM=--with-slurm=separate], [
    AS_IF([test "$with_slurm" = source], [_PMI2X_SLURM_SOURCE],
      [_PMI2X_SLURM_INSTALLED
       _PMI2X_SLURM_SOURCE
       _PMI2X_SLURM_SAME])
    _PMI2X_SLURM_KNOWN
    _PMI2X_SLURM_LAYOUT
    build_plugin=yes
    SLURM_TREE=`cd "$with_slurm_source" && pwd`
    DISTCHECK_SLURM="--with-slurm='$with_slurm' --with-slurm-source='$SLURM_TREE'"
    pmi2x_slurm_summary="for Slurm $pmi2x_slurm_version"
  ])
  AM_CONDITIONAL([BUILD_PLUGIN], [test "$build_plugin" = yes])
  AM_CONDITIONAL([BUILD_FOR_SLURM], [test "$with_slurm" != no])
])

# Version of the installed headers (pmi2x_slurm_version), and of the programs,
# where there are any.
AC_DEFUN([_PMI2X_SLURM_INSTALLED], [
  pmi2x_save_CPPFLAGS=$CPPFLAGS
  pmi2x_slurm_path=$PATH:/usr/sbin:/sbin
  AS_CASE([$with_slurm], [yes|auto], [],
    [AS_IF([test ! -f "$with_slurm/include/slurm/slurm_version.h"],
       [AC_MSG_ERROR([$with_slurm/include/slurm/slurm_version.h not found: --with-slurm=PREFIX is for the PREFIX that Slurm was configured with, with its headers installed])])
     CPPFLAGS="$CPPFLAGS -I$with_slurm/include"
     SLURM_CPPFLAGS="-I$with_slurm/include"
     pmi2x_slurm_path=$with_slurm/bin:$with_slurm/sbin])
  AC_MSG_CHECKING([for the version of the installed Slurm])
  AC_COMPUTE_INT([pmi2x_slurm_number], [SLURM_VERSION_NUMBER],
    [#include <slurm/slurm_version.h>],
    [AC_MSG_RESULT([not found])
     AC_MSG_ERROR([slurm/slurm_version.h not found: install Slurm's development files (on Debian: apt-get install libslurm-dev), name another place with --with-slurm=PREFIX, or build without the plugin with --without-slurm])])
  CPPFLAGS=$pmi2x_save_CPPFLAGS
  pmi2x_slurm_version=`printf '%d.%02d.%d' \
    $(( pmi2x_slurm_number >> 16 )) \
    $(( pmi2x_slurm_number >> 8 & 255 )) $(( pmi2x_slurm_number & 255 ))`
  AC_MSG_RESULT([$pmi2x_slurm_version])

  AC_PATH_PROG([PMI2X_SLURMD], [slurmd], [], [$pmi2x_slurm_path])
  AC_PATH_PROG([PMI2X_SRUN], [srun], [], [$pmi2x_slurm_path])
  AC_MSG_CHECKING([for the version of Slurm's programs])
  # srun reads a slurm.conf even for this
  printf 'ClusterName=none\nSlurmctldHost=localhost\n' >conftest.conf
  pmi2x_programs=
  AS_IF([test -n "$PMI2X_SRUN"],
    [pmi2x_programs=`SLURM_CONF=\`pwd\`/conftest.conf $PMI2X_SRUN --version 2>/dev/null`])
  AS_IF([test -z "$pmi2x_programs" && test -n "$PMI2X_SLURMD"],
    [pmi2x_programs=`$PMI2X_SLURMD -V 2>/dev/null`])
  rm -f conftest.conf
  pmi2x_programs=`AS_ECHO(["$pmi2x_programs"]) | $SED -n 's/.* \(@<:@0-9@:>@@<:@0-9.@:>@*\).*/\1/p'`
  AC_MSG_RESULT([${pmi2x_programs:-none here}])
  AS_IF([test -n "$pmi2x_programs" && test "$pmi2x_programs" != "$pmi2x_slurm_version"],
    [AC_MSG_ERROR([the installed Slurm programs are version $pmi2x_programs, but the headers are version $pmi2x_slurm_version: Slurm would refuse the plugin. Install the development files of version $pmi2x_programs])])
])

AC_DEFUN([_PMI2X_SLURM_KNOWN], [
  AS_CASE([$pmi2x_slurm_version], [22.05.*|23.02.*|23.11.*|24.05.*|24.11.*|25.05.*|25.11.*|26.05.*], [],
    [AC_MSG_WARN([Slurm $pmi2x_slurm_version has not been tested with pmi2x, only those from 22.05 to 26.05: run the system tests before you rely on it])])
])

# The source tree, and its version (pmi2x_source_version).
AC_DEFUN([_PMI2X_SLURM_SOURCE], [
  AS_IF([test -z "$with_slurm_source"], [with_slurm_source=$SLURM_SOURCE])
  AS_IF([test -z "$with_slurm_source" && test -d ./slurm-source],
    [with_slurm_source=`pwd`/slurm-source])
  pmi2x_remedy="Get the right one with: $srcdir/contrib/build/slurm-source DIR, then configure with --with-slurm-source=DIR"
  AC_MSG_CHECKING([for the Slurm source tree])
  AS_CASE([$with_slurm_source],
    [""|yes|no], [AC_MSG_RESULT([not given])
      AC_MSG_ERROR([the plugin needs the source tree of Slurm${pmi2x_slurm_version:+ $pmi2x_slurm_version}. $pmi2x_remedy; or build without the plugin with --without-slurm])],
    [/*], [],
    [with_slurm_source=`pwd`/$with_slurm_source])
  AC_MSG_RESULT([$with_slurm_source])
  AS_IF([test ! -f "$with_slurm_source/META"],
    [AC_MSG_ERROR([$with_slurm_source is not a Slurm source tree. $pmi2x_remedy])])

  AC_MSG_CHECKING([for the version of the Slurm source tree])
  pmi2x_source_version=`$SED -n 's/^ *Version:@<:@@<:@:space:@:>@@:>@*//p' "$with_slurm_source/META" | $SED 1q`
  AC_MSG_RESULT([$pmi2x_source_version])
  AS_IF([test "$with_slurm" = source], [pmi2x_slurm_version=$pmi2x_source_version])
  AS_IF([test ! -f "$with_slurm_source/config.h"],
    [AC_MSG_ERROR([$with_slurm_source has not been configured: $srcdir/contrib/build/slurm-source "$with_slurm_source" prepares it])])

  # Neither make nor configure can pass on a path with a space.
  AS_CASE([$with_slurm_source], [*@<:@\ \	@:>@*],
    [rm -f conf-slurm-source
     $LN_S "$with_slurm_source" conf-slurm-source ||
       AC_MSG_ERROR([cannot make a link to $with_slurm_source])
     with_slurm_source=conf-slurm-source])
  # -iquote comes before the -I of our own config.h. Not -isystem for the other:
  # what is a system directory, too, the compiler leaves out of -iquote.
  SLURM_CPPFLAGS="-iquote $with_slurm_source $SLURM_CPPFLAGS -I$with_slurm_source"
])

# That the source tree is that of the installed Slurm.
AC_DEFUN([_PMI2X_SLURM_SAME], [
  AS_IF([test "$pmi2x_source_version" != "$pmi2x_slurm_version"],
    [AC_MSG_ERROR([the source tree is Slurm $pmi2x_source_version, but Slurm $pmi2x_slurm_version is installed, which would refuse the plugin. $pmi2x_remedy])])
])

# That the headers compile and declare what the plugin calls as it calls it, that
# libslurmfull.so has it, and that a record both know has one size.
AC_DEFUN([_PMI2X_SLURM_LAYOUT], [
  pmi2x_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS -D_GNU_SOURCE $SLURM_CPPFLAGS -I$srcdir/src/plugins/mpi/pmi2x -I."
  AC_MSG_CHECKING([whether Slurm's plugin headers compile])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([@%:@include "slurm_compat.h"
@%:@ifndef USE_ALIAS
@%:@error without USE_ALIAS error() would be the one of the C library
@%:@endif], [[return sizeof(((stepd_step_rec_t *)0)->msg->global_task_ids) == 0]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([a plugin cannot be compiled with $with_slurm_source (see config.log): use a Slurm that this release of pmi2x names in its README. If this is one, remove the source tree and get it again with contrib/build/slurm-source])])
  _PMI2X_SLURM_TYPES
  AC_COMPUTE_INT([pmi2x_conf_size], [sizeof(slurm_conf_t)],
    [#include "slurm_compat.h"], [pmi2x_conf_size=0])
  CPPFLAGS=$pmi2x_save_CPPFLAGS

  AC_MSG_CHECKING([for libslurmfull.so])
  pmi2x_slurmfull=
  AS_IF([test "$with_slurm" != source], [for pmi2x_dir in "$with_slurm"/lib*/slurm /usr/lib/*/slurm-wlm /usr/lib/*/slurm \
      /usr/lib64/slurm /usr/lib/slurm /usr/lib/slurm-wlm; do
    AS_IF([test -z "$pmi2x_slurmfull" && test -f "$pmi2x_dir/libslurmfull.so"],
      [pmi2x_slurmfull=$pmi2x_dir/libslurmfull.so])
  done])
  AC_MSG_RESULT([${pmi2x_slurmfull:-none here, its symbols are not checked}])
  SLURMFULL=$pmi2x_slurmfull
  AS_IF([test -n "$pmi2x_slurmfull"], [_PMI2X_SLURM_SYMBOLS])
])

# The entries of slurm_calls.h for this version, with the names that the library
# has (pmi2x_slurm_calls, conftest.calls), and that each has the type there: all at
# once, and one by one only to name those that have not.
AC_DEFUN([_PMI2X_SLURM_TYPES], [
  AC_MSG_CHECKING([whether Slurm's functions have the types that the plugin calls])
  AC_LANG_CONFTEST([AC_LANG_SOURCE([@%:@include "slurm_compat.h"
@%:@include "slurm_calls.h"])])
  $CC -E -P $CPPFLAGS conftest.$ac_ext 2>&AS_MESSAGE_LOG_FD |
    grep '^SLURM_@<:@A-Z@:>@*(' >conftest.all
  pmi2x_slurm_calls=`$SED -n 's/^SLURM_@<:@CD@:>@@<:@A-Z@:>@*(\(@<:@^,@:>@*\),.*/\1/p' conftest.all | sort | tr '\n' ' '`
  pmi2x_slurm_calls=${pmi2x_slurm_calls% }
  SLURM_CALLS=$pmi2x_slurm_calls
  # looked at again when the list has changed
  AC_SUBST([CONFIG_STATUS_DEPENDENCIES],
    ['$(top_srcdir)/src/plugins/mpi/pmi2x/slurm_calls.h'])
  cp conftest.all conftest.calls
  pmi2x_wrong=
  _PMI2X_SLURM_COMPILE_CALLS([], [
    for pmi2x_symbol in `$SED 's/^SLURM_@<:@A-Z@:>@*(\(@<:@^,@:>@*\),.*/\1/' conftest.all`; do
      grep "(${pmi2x_symbol}," conftest.all >conftest.calls
      _PMI2X_SLURM_COMPILE_CALLS([], [pmi2x_wrong="$pmi2x_wrong $pmi2x_symbol"])
    done])
  rm -f conftest.all conftest.calls
  AS_IF([test -z "$pmi2x_slurm_calls"], [pmi2x_wrong=" everything"])
  AS_IF([test -n "$pmi2x_wrong"],
    [AC_MSG_RESULT([not:$pmi2x_wrong])
     AC_MSG_ERROR([Slurm $pmi2x_slurm_version has no function, or one of another type, for what the plugin calls as$pmi2x_wrong (see config.log): use a Slurm or a release of pmi2x whose README names the two together, or build without the plugin with --without-slurm])])
  AC_MSG_RESULT([yes])
])

# _PMI2X_SLURM_COMPILE_CALLS(IF-RIGHT, IF-WRONG): what is in conftest.calls.
AC_DEFUN([_PMI2X_SLURM_COMPILE_CALLS], [
  AC_COMPILE_IFELSE([AC_LANG_SOURCE([@%:@define SLURM_CALLS "conftest.calls"
@%:@include "slurm_types.c"])], [$1], [$2])])

AC_DEFUN([_PMI2X_SLURM_SYMBOLS], [
  AC_MSG_CHECKING([whether libslurmfull.so has what the plugin calls])
  $NM -D -S --defined-only "$pmi2x_slurmfull" >conftest.nm 2>/dev/null
  pmi2x_missing=
  for pmi2x_symbol in $pmi2x_slurm_calls; do
    AS_IF([grep " ${pmi2x_symbol}\$" conftest.nm >/dev/null], [],
      [pmi2x_missing="$pmi2x_missing $pmi2x_symbol"])
  done
  pmi2x_installed_size=`awk '$[4] == "slurm_conf" { print $[2] }' conftest.nm`
  rm -f conftest.nm
  AS_IF([test -n "$pmi2x_missing"],
    [AC_MSG_RESULT([no:$pmi2x_missing])
     AC_MSG_ERROR([$pmi2x_slurmfull lacks$pmi2x_missing: this Slurm cannot load the plugin. Use a Slurm that this release of pmi2x names in its README])])
  AC_MSG_RESULT([yes])
  AC_MSG_CHECKING([whether Slurm's records have the layout of the source tree])
  AS_IF([test -z "$pmi2x_installed_size" || test "$pmi2x_conf_size" = $(( 0x$pmi2x_installed_size ))],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([slurm_conf_t has $pmi2x_conf_size bytes in the source tree but $(( 0x$pmi2x_installed_size )) in the installed Slurm: the source tree is not the one that Slurm was built from. $pmi2x_remedy])])
])
