#!/bin/busybox sh
# The first process of the virtual machine. The kernel's messages are on the
# first serial line; the second one is for the script's output alone and for
# the end line, which the machine's owner gave on the command line.
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mkdir -p /proc /sys /dev /run /root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mount -t tmpfs -o mode=1777 tmp /tmp
exec </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw -echo
end=$(sed -n 's/.*sluice\.end=\([0-9a-f]*\).*/\1/p' /proc/cmdline)

status=0
while read -r module; do
  insmod "$module" || status=125
done </modules
ip link set lo up

# Where the script runs: here, or on the root disk if there is one.
enter=
if [ -b /dev/vda ]; then
  mkdir /disk
  mount -t ext4 /dev/vda /disk || status=125
  for dir in proc sys dev run tmp guest; do
    mount --rbind /$dir /disk/$dir || status=125
  done
  enter="chroot /disk /usr/bin/env"
fi
cp /script /guest/.script
# A third line is for who wants to look around.
if stty -F /dev/ttyS2 raw -echo 2>/dev/null; then
  $enter sh -c 'cd /guest && exec sh </dev/ttyS2 >/dev/ttyS2 2>&1' &
fi
if [ $status = 0 ]; then
  cd / || status=125
  $enter sh -c 'cd /guest && exec sh ./.script'
  status=$?
fi
echo
echo "sluice-vm-end $end $status"
# What was written is on its way only once the line is drained.
stty -F /dev/ttyS1 raw -echo
sync
reboot -f
