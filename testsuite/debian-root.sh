# SPDX-License-Identifier: BSD-3-Clause
# For bash scripts, which source it: a Debian in a directory, and commands in it.
# A script sets `top`, the source tree, runs with "set -eu", and is root.

# The first archive that apt here gets Debian's main component from.
apt_mirror()
{
	apt-get indextargets --format '$(COMPONENT) $(REPO_URI)' \
		'Created-By: Packages' |
		awk '$1 == "main" && $2 !~ /security/ { print $2; exit }'
}

# How this machine reaches apt's and pip's archives; not apt's sources.
copy_network_settings() # ROOT
{
	local file
	apt-config dump | grep -iE '^Acquire::((https?|ftp)::|Check-)' \
		>"$1/etc/apt/apt.conf.d/99host" || true
	for file in /etc/resolv.conf /etc/hosts /etc/pip.conf \
		/root/.config/pip/pip.conf /etc/ssl/certs/ca-certificates.crt; do
		[ ! -e "$file" ] || install -D -m 644 "$file" "$1$file" || return
	done
}

# No daemon starts with its package; nobody needs what a crash would leave of it.
set_up_packaging() # ROOT
{
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod 755 "$1/usr/sbin/policy-rc.d"
	echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/root"
}

# As small as Debian gets, and what else is named. The log is beside it.
make_root() # ROOT RELEASE MIRROR [PACKAGE...]
{
	local root=$1 release=$2 mirror=$3 include=ca-certificates package
	shift 3
	for package; do
		include=$include,$package
	done
	[ -n "$mirror" ] || mirror=$(apt_mirror)
	[ -n "$mirror" ] || {
		echo "apt has no mirror of Debian here: name one with --mirror" >&2
		return 1
	}
	command -v debootstrap >/dev/null || "$top/contrib/build/install-deps" chroot ||
		return
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	debootstrap --variant=minbase --include="$include" "$release" "$root" \
		"$mirror" >"$root.log" 2>&1 || {
		tail -n 20 "$root.log" >&2
		echo "debootstrap cannot make a Debian $release from $mirror" >&2
		return 1
	}
	copy_network_settings "$root" && set_up_packaging "$root"
}

# What git knows or would add, as src there.
copy_sources() # ROOT
{
	mkdir "$1/src"
	(cd "$top" && git ls-files -z --cached --others --exclude-standard) |
		tar -C "$top" --null --ignore-failed-read -T - -cf - 2>/dev/null |
		tar -C "$1/src" -xf -
}

# What pip and apt are told by the environment goes along.
carried_environment()
{
	env -0 | grep -zE \
		'^(CI|PIP_[A-Z_]+|SSL_CERT_FILE|((https?|ftp|no|all)_proxy|(HTTPS?|FTP|NO|ALL)_PROXY))=' ||
		true
}

# The command is the first process of namespaces of its own: all mounts and all
# processes end with it, and it ends with this script, however that ends. The
# host's name is one that nothing resolves, as on a machine that is just made. A
# chroot alone is not enough: from there the paths of what is open in another
# mount namespace, as a node under test may have, read differently.
in_root() # ROOT COMMAND...
{
	local carried
	mapfile -d '' carried < <(carried_environment)
	setpriv --pdeathsig KILL \
		unshare --mount --pid --ipc --uts --fork --kill-child \
		--propagation private bash -euc '
		mount --bind "$0" "$0"
		cd "$0"
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --rbind /dev dev
		mount -t tmpfs -o mode=1777 shm dev/shm
		echo new-debian >/proc/sys/kernel/hostname
		pivot_root . .
		umount -l .
		exec chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			"$@"' \
		"$1" "${carried[@]}" "${@:2}" </dev/null &
	wait "$!" # bash would not hear of a signal before its foreground process ends
}

# What still runs holds the other end of the pipe.
end_and_remove()
{
	local child
	for child in $(jobs -p); do
		kill -KILL "$child" || true
	done 2>/dev/null
	exec {remover_pipe}>&-
	wait "$remover" || true
}

# At the end of this script and of all that it has started, whatever ends it: then
# nobody holds the other end of the pipe. Sets remover_pipe and remover.
remove_at_end() # DIRECTORY
{
	exec {remover_pipe}> >(exec setsid sh -c \
		'trap "" HUP INT TERM; cat >/dev/null; rm -rf --one-file-system "$1"' \
		remover "$1")
	remover=$!
	trap end_and_remove EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}
