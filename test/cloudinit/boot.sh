# Run by the first process of new mount, pid, UTS and IPC namespaces, in the machine's
# network namespace: boot.sh ROOT PLACE STAGE...
# Writes a tar archive of what cloud-init left to standard output.
root=$1 place=$2
shift 2
mount -t tmpfs -o mode=0755 overlay "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay -o "lowerdir=$root,upperdir=$place/upper,workdir=$place/work" overlay "$place/root"
cd "$place/root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=0755 run run
mount -t tmpfs tmp tmp
# No device but these: nothing of the machine can be written to.
mount -t tmpfs -o mode=0755 dev dev
for device in 'null 3' 'zero 5' 'full 7' 'random 8' 'urandom 9'; do
  mknod -m 666 "dev/${device% *}" c 1 "${device#* }"
done
ln -s /proc/self/fd dev/fd
# requests 2.32 looks for a link "25eth0" where a URL has [fe80::a9fe:a9fe%25eth0], with
# an encoded "%" (canonical/cloud-init#6205): with a second name of the link it finds it.
[ ! -e sys/class/net/eth0 ] || chroot . ip link property add dev eth0 altname 25eth0 2>/dev/null || true
hostname machine
echo machine >etc/hostname
rm -f etc/resolv.conf # a name server that does not answer would be waited for
cat >etc/cloud/cloud.cfg.d/99-lab.cfg <<END
datasource_list: [OpenStack]
network: {config: disabled}
cloud_init_modules: []
cloud_config_modules: []
cloud_final_modules: []
END
status=0
for stage; do
  # shellcheck disable=SC2086 # words of a stage
  chroot . cloud-init --debug $stage >&2 || { status=$?; break; }
done
tar -cf - --ignore-failed-read var/lib/cloud var/log run/cloud-init
exit $status
