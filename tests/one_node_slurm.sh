#!/usr/bin/env bash
# A Slurm of one node, on this machine, for as long as a command runs: tests/one_node_slurm.sh FOLDER COMMAND...
# Needs root and Debian's slurmctld, slurmd, slurm-client and munge. All that it writes is in FOLDER, besides a link in
# /etc/slurm while it runs: jobs do not see the variable that names another place.
set -euo pipefail
folder=$1
shift
mkdir -p "$folder"/{state,spool,log,munge}
chmod 711 "$folder/munge"
host=$(hostname -s)
memory=$(($(free -m | awk '/^Mem:/ {print $2}') * 9 / 10))
export SLURM_CONF=$folder/slurm.conf
cat >"$SLURM_CONF" <<END
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
SlurmUser=root
SlurmdUser=root
SlurmctldPort=${SLURM_PORT:-6917}
SlurmdPort=$((${SLURM_PORT:-6917} + 1))
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc --all) RealMemory=$memory Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
echo "NodeName=$host Name=gpu Count=1 File=/dev/null" >"$folder/gres.conf"

dd if=/dev/urandom of="$folder/munge/key" bs=128 count=1 status=none
chmod 600 "$folder/munge/key"
if [ -e /etc/slurm/slurm.conf ]; then
    echo "There is a Slurm on this machine: /etc/slurm/slurm.conf" >&2
    exit 1
fi
started=()
trap 'rm -f /etc/slurm/slurm.conf; kill "${started[@]}" 2>/dev/null; wait' EXIT
ln -s "$SLURM_CONF" /etc/slurm/slurm.conf
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge/socket" \
    --pid-file="$folder/munge/pid" --seed-file="$folder/munge/seed" --log-file="$folder/log/munge" &
started+=($!)
while [ ! -S "$folder/munge/socket" ]; do sleep 0.1; done
slurmctld -D >/dev/null 2>&1 &
started+=($!)
slurmd -D >/dev/null 2>&1 &
started+=($!)
for _ in $(seq 100); do
    sinfo --noheader --format %t 2>/dev/null | grep -qE '^(idle|mix|alloc)$' && break
    sleep 0.3
done
"$@"
