#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What the packages of the plugin do after they were installed: they reload slurmd and
# slurmctld where these run under systemd, and restart nothing. Before they are removed they
# warn of MpiDefault. systemd and scontrol are played.
set -eu
srcdir=${srcdir:-.}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "package-scripts-test: $*" >&2
	exit 1
}

# Both print what they are asked; the units named in "active" are.
cat >"$dir/systemctl" <<END
#!/bin/sh
case "\$*" in
"--quiet is-active "*) grep -qx "\$3" "$dir/active" ;;
*) echo "\$*" >>"$dir/asked"; [ ! -e "$dir/broken" ] ;;
esac
END
cp "$dir/systemctl" "$dir/deb-systemd-invoke"
chmod +x "$dir"/*systemd* "$dir/systemctl"

spec=$srcdir/contrib/packaging/pmi2x-plugin.spec.in
sed -n '/^%post$/,/^%preun$/{/^%/!p}' "$spec" >"$dir/rpm.in"
sed -n '/^%preun$/,/^%files/{/^%/!p}' "$spec" >"$dir/rpm.prerm"
cp "$srcdir/contrib/packaging/plugin-deb/plugin.postinst" "$dir/deb.in"
cp "$srcdir/contrib/packaging/plugin-deb/plugin.prerm" "$dir/deb.prerm"

# The argument of the scripts, for a package that is installed, or removed.
installs() { [ "$1" = deb ] && echo configure || echo 1; }
removes() { [ "$1" = deb ] && echo remove || echo 0; }

run() { # KIND UNIT...
	kind=$1
	shift
	printf '%s\n' "$@" >"$dir/active"
	: >"$dir/asked"
	sed "s|/run/systemd/system|$dir/systemd|" "$dir/$kind.in" >"$dir/$kind"
	PATH=$dir:$PATH sh "$dir/$kind" "$(installs $kind)" >"$dir/said" 2>"$dir/errors" ||
		fail "the script of the $kind package failed"
}

asked() { # KIND LINES
	[ "$(cat "$dir/asked")" = "$2" ] ||
		fail "the $1 package has asked for '$(cat "$dir/asked")', not for '$2'"
}

for kind in deb rpm; do
	[ -s "$dir/$kind.in" ] || fail "the $kind package has no script"
	rm -rf "$dir/systemd" "$dir/broken"
	run $kind slurmd.service
	grep -q 'run "scontrol reconfigure", and then "pmi2x check"' "$dir/said" ||
		fail "the $kind package does not say what to do next"
	asked $kind ''
	mkdir "$dir/systemd"
	run $kind ssh.service
	asked $kind ''
	run $kind slurmd.service
	asked $kind 'reload slurmd.service'
	run $kind slurmctld.service slurmd.service
	asked $kind 'reload slurmd.service
reload slurmctld.service'
	touch "$dir/broken"
	run $kind slurmctld.service
	grep -q 'cannot reload slurmctld: run "scontrol reconfigure"' "$dir/errors" ||
		fail "the $kind package does not say that a reload has failed"
done

cat >"$dir/scontrol" <<END
#!/bin/sh
cat "$dir/config"
END
chmod +x "$dir/scontrol"

warns() { # KIND CONFIG ARGUMENT...
	kind=$1
	echo "$2" >"$dir/config"
	shift 2
	PATH=$dir:$PATH sh "$dir/$kind.prerm" "$@" >"$dir/said" 2>"$dir/errors" ||
		fail "the script of the $kind package failed before its removal"
	grep -q 'WARNING: slurm.conf has MpiDefault=pmi2x' "$dir/errors"
}

for kind in deb rpm; do
	warns $kind 'MpiDefault              = pmi2x' "$(removes $kind)" ||
		fail "the $kind package does not warn of MpiDefault"
	grep -q 'such as pmi2x-plugin-' "$dir/said" ||
		fail "the $kind package names no plugin for a newer Slurm"
	! warns $kind 'MpiDefault              = pmix' "$(removes $kind)" ||
		fail "the $kind package warns without need"
	! warns $kind 'MpiDefault              = pmi2x' 1 ||
		fail "the $kind package warns of an upgrade"
done
