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
if [ $status = 0 ]; then
  cd /guest || status=125
  sh /script
  status=$?
fi
echo
echo "sluice-vm-end $end $status"
# What was written is on its way only once the line is drained.
stty -F /dev/ttyS1 raw -echo
sync
reboot -f
