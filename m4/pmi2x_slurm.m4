# SPDX-License-Identifier: BSD-3-Clause
# PMI2X_SLURM: find the installed Slurm and the source tree that matches it.
AC_DEFUN([PMI2X_SLURM], [
  AC_ARG_WITH([slurm],
    [AS_HELP_STRING([--without-slurm], [build everything but the Slurm plugin])],
    [], [with_slurm=auto])
  AC_ARG_WITH([slurm-source],
    [AS_HELP_STRING([--with-slurm-source=DIR],
      [source tree of the installed Slurm version (contrib/slurm-source gets it)])],
    [], [with_slurm_source=])
  AC_ARG_WITH([slurm-plugindir],
    [AS_HELP_STRING([--with-slurm-plugindir=DIR],
      [where mpi_pmi2x.so is installed @<:@LIBDIR/slurm@:>@])],
    [slurm_plugindir=$withval], [slurm_plugindir='${libdir}/slurm'])
  AC_SUBST([slurm_plugindir])
  SLURM_CPPFLAGS=
  AC_SUBST([SLURM_CPPFLAGS])
  build_plugin=no
  pmi2x_slurm_summary="not built (--without-slurm)"
  AM_CONDITIONAL([BUILD_PLUGIN], [test "$build_plugin" = yes])
])
