#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What the packages of the plugin do after they were installed: they reload slurmd and
# slurmctld where these run under systemd, and restart nothing. systemd is played.
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

sed -n '/^%post$/,/^%files/{/^%/!p}' \
	"$srcdir/contrib/packaging/pmi2x-plugin.spec.in" >"$dir/rpm.in"
cp "$srcdir/contrib/packaging/plugin-deb/plugin.postinst" "$dir/deb.in"

run() { # KIND UNIT...
	kind=$1
	shift
	printf '%s\n' "$@" >"$dir/active"
	: >"$dir/asked"
	sed "s|/run/systemd/system|$dir/systemd|" "$dir/$kind.in" >"$dir/$kind"
	PATH=$dir:$PATH sh "$dir/$kind" configure 2>"$dir/errors" ||
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
