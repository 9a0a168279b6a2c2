#!/bin/bash
# Boots a Linux of its own under qemu, without KVM and without a disk: Debian's cloud kernel and an initramfs of busybox, some
# programs of this machine, and a script, whose end powers off. The host is 10.0.2.2 there. Takes about ten seconds.
#
# usage: guest.sh FOLDER SCRIPT     FOLDER: where kernel and initramfs are built; the kernel is kept for the next time
#   MODULES="btrfs ..."             kernel modules beside those of virtio-net and nvme-tcp
#   PROGRAMS="fio mkfs.ext4 ..."    programs beside busybox and nvme
#   MEMORY=768                      megabytes
#
# Prints the console. Exits with 3, and says why, where something is missing: qemu-system-x86_64, busybox (static), nvme, cpio,
# modprobe, or a kernel package.
set -euo pipefail
folder=$1
script=$(realpath "$2")

missing() { echo "guest.sh: missing: $*"; exit 3; }
for program in qemu-system-x86_64 busybox nvme cpio ${PROGRAMS:-}; do
    command -v "$program" >/dev/null || missing "$program"
done
command -v /sbin/modprobe >/dev/null || missing modprobe
if ldd "$(command -v busybox)" >/dev/null 2>&1; then missing "a static busybox"; fi

mkdir -p "$folder" && cd "$folder"
if test ! -d kernel; then
    # The metapackage depends on the package of the current version.
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends: linux-image/{print $2; exit}')
    test -n "$package" || missing "the package linux-image-cloud-amd64"
    apt-get download -qq "$package" >/dev/null 2>&1 || missing "$package (no download)"
    rm -rf unpacked && dpkg -x linux-image-*.deb unpacked && mv unpacked kernel
fi
version=$(ls kernel/lib/modules)
/sbin/depmod -b kernel "$version"

rm -rf root && mkdir -p root/bin root/modules root/proc root/sys root/dev root/tmp root/mnt
cp "$(command -v busybox)" root/bin/
# In the order in which they can be inserted.
number=0
for module in virtio_pci virtio_net nvme-tcp ${MODULES:-}; do
    /sbin/modprobe -d "$PWD/kernel" -S "$version" --show-depends "$module"
done | awk '/^insmod/ && !seen[$2]++ {print $2}' | while read -r file; do
    number=$((number + 1))
    cp "$file" "root/modules/$(printf %03d $number)-$(basename "$file")"
done
for program in nvme ${PROGRAMS:-}; do
    file=$(command -v "$program")
    cp -L "$file" root/bin/
    { ldd "$file" 2>/dev/null || true; } | awk '/=> \//{print $3} /^\t\/lib/{print $1}' | while read -r library; do
        mkdir -p "root$(dirname "$library")"
        cp -nL "$library" "root$library"
    done
done
cp "$script" root/script
cat >root/init <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
# Those for instructions that this processor does not have are refused.
for module in /modules/*.ko; do insmod "$module" 2>/dev/null; done
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
sh /script
echo "guest: exit $?"
sync
poweroff -f
INIT
chmod +x root/init
(cd root && find . | cpio -o -H newc 2>/dev/null | gzip -1 >../initrd)
exec qemu-system-x86_64 -m "${MEMORY:-768}" -smp 2 -nographic -no-reboot -kernel kernel/boot/vmlinuz-* -initrd initrd \
    -append "console=ttyS0 quiet panic=-1" -netdev user,id=net -device virtio-net-pci,netdev=net </dev/null
