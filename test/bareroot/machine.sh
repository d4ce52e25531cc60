# Run by the first process of new mount, pid, UTS and IPC namespaces: machine.sh ROOT PLACE TREE GOROOT COMMAND
# Runs a command of the shell in the checkout of a machine that is new: an overlay over ROOT, in memory, with a
# clone of TREE and its uncommitted changes in /sluice. All is gone with the namespaces.
root=$1 place=$2 tree=$3 goroot=$4 command=$5
mount -t tmpfs -o mode=0755,size=90% overlay "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay -o "lowerdir=$root,upperdir=$place/upper,workdir=$place/work" overlay "$place/root"
cd "$place/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=0755 run run
mount -t tmpfs -o mode=1777 tmp tmp

# What a newcomer's machine has of its own: Go, certificates, names.
mkdir -p usr/local/go
mount --bind -o ro "$goroot" usr/local/go
mount --bind -o ro /etc/ssl/certs etc/ssl/certs
cp -L /etc/resolv.conf /etc/hosts etc/
hostname bare

git -c safe.directory='*' clone -q --no-hardlinks "$tree" sluice
here=$PWD
cd "$tree"
git -c safe.directory='*' ls-files -z -d | (cd "$here/sluice" && xargs -0 -r rm -f)
git -c safe.directory='*' ls-files -z -mo --exclude-standard >"$here/tmp/changed"
xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' - <"$here/tmp/changed" >"$here/tmp/there"
tar --null -cf "$here/tmp/changes.tar" -T "$here/tmp/there"
tar -C "$here/sluice" -xf "$here/tmp/changes.tar"
cd "$here"
chown -R 0:0 sluice
exec chroot . sh -c "cd /sluice && $command"
