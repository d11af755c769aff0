#!/bin/sh
# What a node's first process does, in new namespaces: make the file system the node's own, then wait as its init.
# What a node writes goes below its directory; what it shares with this machine (/usr, /bin, the caches) it only reads.
#
#   boot.sh DIRECTORY NAME BOOT-ID INIT...
set -e
directory=$1 name=$2 boot=$3
shift 3

hostname "$name" 2>/dev/null || echo "$name" > /proc/sys/kernel/hostname
for top in etc opt var; do
    mkdir -p "$directory/$top/upper" "$directory/$top/work"
    mount -t overlay overlay -o "lowerdir=/$top,upperdir=$directory/$top/upper,workdir=$directory/$top/work" "/$top"
done
# containerd makes overlays of its own below these, and an overlay cannot be the upper layer of another.
for state in containerd kubelet podtide; do
    mkdir -p "$directory/$state" "/var/lib/$state"
    mount --bind "$directory/$state" "/var/lib/$state"
done
mkdir -p /var/log/pods /var/log/containers
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/lock
mount --make-rshared /

# A booted machine is told from the one before by this, and a machine from others by /etc/machine-id.
printf '%s\n' "$boot" > /run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id

for setting in net/ipv4/ip_forward net/ipv6/conf/all/forwarding; do echo 1 > "/proc/sys/$setting"; done
for setting in all default; do echo 0 > "/proc/sys/net/ipv6/conf/$setting/accept_dad"; done
ip link set lo up
touch "$directory/booted"
exec "$@"
