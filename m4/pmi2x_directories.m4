# SPDX-License-Identifier: BSD-3-Clause
# PMI2X_DIRECTORIES: refuse at once to install where libtool cannot. It would fail
# in "make install", after everything has been built.
AC_DEFUN([PMI2X_DIRECTORIES], [
  for pmi2x_name in prefix exec_prefix bindir libdir libexecdir includedir \
      datarootdir datadir mandir docdir with_slurm_plugindir; do
    eval "pmi2x_value=\$$pmi2x_name"
    AS_CASE([$pmi2x_value], [*@<:@\ \	@:>@*],
      [pmi2x_name=`AS_ECHO(["$pmi2x_name"]) | tr _ -`
       AC_MSG_ERROR([--$pmi2x_name='$pmi2x_value': libtool cannot install to a path with white space; name another one])])
  done
])
