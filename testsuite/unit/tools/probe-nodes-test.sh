#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What pmi2x-probe --nodes says of plugins of other builds, protocols and Slurms, of
# none, and of nodes that Slurm waits for. A Slurm of three nodes is played by scripts;
# each node has a directory of its own.
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
	printf "ELF\\001\\377$3\\000more" >"$dir/$1/$2"
}

plugin() { # NODE MARK
	put "$1" mpi_pmi2x.so "$2"
}

cat >"$dir/scontrol" <<END
#!/bin/sh
case "\$*" in
--version) echo "slurm 22.05.8" ;;
"show hostnames n[1-3]") printf 'n1\nn2\nn3\n' ;;
"show hostnames "*) echo "\$3" ;;
*) echo "PluginDir               = $dir/here" ;;
esac
END
cat >"$dir/sinfo" <<END
#!/bin/sh
printf 'n1 idle 22.05.8\nn2 mixed 22.05.8\nn3 idle 22.05.8\n'
END
cat >"$dir/squeue" <<END
#!/bin/sh
[ "\$SLURM_TIME_FORMAT" = %s ] && cat "$dir/completing"
END
: >"$dir/completing"
cat >"$dir/srun" <<END
#!/bin/sh
while [ "\$1" != -w ]; do shift; done
nodes=\$2
while [ "\$1" != -c ]; do shift; done
for node in \$(echo "\$nodes" | tr , ' '); do
	SLURMD_NODENAME=\$node sh -c "\$2" "$dir/\$node" "$dir/\$node/pmi2x-agent"
done
END
cat >"$dir/timeout" <<END
#!/bin/sh
[ ! -e "$dir/late" ] || exit 124
shift 4
exec "\$@"
END
chmod +x "$dir"/[st]*

probe() { # STATUS
	status=0
	PATH=$dir:$PATH src/tools/pmi2x-probe --nodes 'n[1-3]' \
		>"$dir/out" 2>&1 || status=$?
	[ "$status" = "$1" ] || fail "exit status $status, not $1"
}

said() { # NODE VERDICT
	grep -Eq "^$1 .* $2\$" "$dir/out" || fail "no '$2' for $1"
}

says() { # TEXT
	tr '\n' ' ' <"$dir/out" | grep -qF "$1" || fail "no '$1'"
}

says_nothing() { # TEXT
	! grep -qF "$1" "$dir/out" || fail "'$1' is said"
}

same='pmi2x build 0.1.0-0123456789ab protocol 7'
for node in here n1 n2 n3; do
	plugin $node "$same"
	put $node pmi2x-agent "$same"
done
probe 0
says_nothing 'has waited'
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

# Of a plugin for another Slurm; 0x160507 is 22.05.7.
for node in here n1 n2 n3; do
	plugin $node "$same"'\000pmi2x slurm 0x160508'
	put $node pmi2x-agent "$same"
done
probe 0
plugin n2 "$same"'\000pmi2x slurm 0x160507'
probe 1
said 'n2 .*so' 'for Slurm 22.05.7, not 22.05.8'
said 'n2 .*agent' ok
said n1 ok
plugin n2 "$same"'\000pmi2x slurm 0x160508'
plugin here "$same"'\000pmi2x slurm 0x1a0503'
probe 1
said '.this host.' 'for Slurm 26.05.3, not 22.05.8'

# Of a node that has been completing for long, and of one that has just begun.
plugin here "$same"'\000pmi2x slurm 0x160508'
echo "$(($(date +%s) - 300)) n2" >"$dir/completing"
echo "$(date +%s) n3" >>"$dir/completing"
probe 1
said 'n2 .*so' 'completing for 30[0-9] s'
said n1 ok
said n3 ok
says 'Slurm has waited for more than a minute for n2 to end a job.'
says 'systemctl restart slurmd'
: >"$dir/completing"
probe 0

# Of a Slurm, and of nodes, that do not answer.
touch "$dir/late"
probe 1
says 'scontrol did not end within 60 s'
sed -i '/late/s/.*/[ "\$5" != srun ] || exit 124/' "$dir/timeout"
probe 1
says 'srun did not end within 120 s'
said 'n1 .*so' 'no answer'
said 'n1 .*libpmix.so.2' 'no answer'
