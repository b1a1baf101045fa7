#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What pmi2x-probe --nodes says of plugins of other builds, other protocols, and none.
# A Slurm of three nodes is played by scripts; each node has a directory of its own.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset PMI_FD

fail() {
	echo "probe-nodes-test: $*" >&2
	sed 's/^/  /' "$dir/out" >&2
	exit 1
}

put() { # NODE FILE MARK
	mkdir -p "$dir/$1"
	printf 'ELF\001\377%s\000more' "$3" >"$dir/$1/$2"
}

plugin() { # NODE MARK
	put "$1" mpi_pmi2x.so "$2"
}

cat >"$dir/scontrol" <<END
#!/bin/sh
case \$2 in
hostnames) printf 'n1\nn2\nn3\n' ;;
*) echo "PluginDir               = $dir/here" ;;
esac
END
cat >"$dir/sinfo" <<END
#!/bin/sh
printf 'n1 idle\nn2 mixed\nn3 idle\n'
END
cat >"$dir/srun" <<END
#!/bin/sh
while [ "\$1" != -c ]; do shift; done
for node in n1 n2 n3; do
	SLURMD_NODENAME=\$node sh -c "\$2" "$dir/\$node" "$dir/\$node/pmi2x-agent"
done
END
chmod +x "$dir"/s*

probe() { # STATUS
	status=0
	PATH=$dir:$PATH contrib/tools/pmi2x-probe --nodes 'n[1-3]' \
		>"$dir/out" 2>&1 || status=$?
	[ "$status" = "$1" ] || fail "exit status $status, not $1"
}

said() { # NODE VERDICT
	grep -Eq "^$1 .* $2\$" "$dir/out" || fail "no '$2' for $1"
}

same='pmi2x build 0.1.0-0123456789ab protocol 7'
for node in here n1 n2 n3; do
	plugin $node "$same"
	put $node pmi2x-agent "$same"
done
probe 0
said n3 ok
said "n3 +libpmix.so.2" "(ok|missing: .*)"

put n2 pmi2x-agent 'pmi2x build 0.1.0-ba9876543210 protocol 8'
rm "$dir/n3/pmi2x-agent"
probe 1
said 'n2 .*agent' 'another protocol'
said 'n3 .*agent' missing
said n3 ok

plugin n1 'pmi2x build 0.1.0-ba9876543210 protocol 7'
plugin n2 'pmi2x build 0.1.0-ba9876543210 protocol 8'
rm "$dir/n3/mpi_pmi2x.so"
probe 1
said n1 'another build'
said n2 'another protocol'
said n3 missing

plugin n3 'something else'
probe 1
said n3 'unknown build'

rm "$dir"/*/mpi_pmi2x.so
for node in n1 n2 n3; do
	put $node pmi2x-agent "$same"
done
probe 1
said n1 missing
said 'n2 .*agent' ok
