# Sourced by tools that run something under another kernel: a virtual machine in qemu's software emulation (no KVM, no root
# needed) with Debian's stock kernel and an initial file system that holds what the caller copied into it. That kernel has
# netem and Soft-RoCE as modules; emulation is 10 to 20 times slower than this machine.
#
#   vm_fetch_kernel && vm_begin FOLDER && vm_copy FILE... && vm_modules MODULE... && vm_run
#
# Functions return 0, or not 0 after a line on standard error. guest_init says what runs inside and how.

vm_kernel=build/vm/kernel  # unpacked, never installed; kept until somebody deletes it

vm_note() { echo "$*" >&2; }

# Prints the programs that this machine lacks, a line each, of those that every virtual machine needs and those named.
vm_lacks() {
  local program
  for program in qemu-system-x86_64 busybox cpio depmod modprobe dpkg-deb "$@"; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || echo "$program"
  done
}

# Downloads and unpacks the kernel unless it is there. Sets vm_version.
vm_fetch_kernel() {
  local package boot=("$vm_kernel"/boot/vmlinuz-*)
  if ! [ -e "${boot[0]}" ]; then
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -1)
    [ -n "$package" ] || { vm_note "apt knows no package linux-image-amd64"; return 1; }
    vm_note "Fetching $package"
    vm_unpack_kernel "$package" || { vm_note "could not download and unpack $package"; return 1; }
    boot=("$vm_kernel"/boot/vmlinuz-*)
  fi
  vm_version=${boot[0]##*/vmlinuz-}
}

# Into a folder of its own first, so that one that was interrupted is not taken for a kernel.
vm_unpack_kernel() (
  set -e
  local modules=./lib/modules/*/kernel
  rm -rf "$vm_kernel.new"
  mkdir -p "$vm_kernel.new"
  cd "$vm_kernel.new"
  apt-get -qq download "$1" 2>/dev/null
  dpkg-deb --fsys-tarfile "$1"_*.deb | tar x --wildcards --no-wildcards-match-slash './boot/vmlinuz-*' \
    './lib/modules/*/modules.*' "$modules"/{net,lib,crypto,arch,fs/configfs,drivers/infiniband,drivers/net/*.ko}
  rm "$1"_*.deb
  depmod -b . "$(ls lib/modules)"
  cd - >/dev/null
  mv "$vm_kernel.new" "$vm_kernel"
)

# Starts an empty file system for the machine in folder $1 (root/, initramfs, console, output): a shell, busybox's
# programs last in the path, the names that Debian's programs expect.
vm_begin() {
  vm_folder=$1
  vm_root=$vm_folder/root
  mkdir -p "$vm_folder"
  exec {vm_lock}>"$vm_folder/lock"
  flock -n "$vm_lock" || { vm_note "another virtual machine runs in $vm_folder"; return 1; }
  rm -rf "$vm_root"
  mkdir -p "$vm_root"/{dev,proc,sys,tmp,run,root,var,etc,busybox,usr/{bin,sbin,lib,lib64}} || return
  local folder
  for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$vm_root/$folder"; done
  : >"$vm_root/modules"
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$vm_root/etc/passwd"
  printf '127.0.0.1 localhost\n' >"$vm_root/etc/hosts"
  cp "$(command -v busybox)" "$vm_root/busybox/busybox"
  vm_copy "$(command -v dash)"
  ln -s dash "$vm_root/usr/bin/sh"
  install -m 755 "${BASH_SOURCE[0]%/*}/guest_init" "$vm_root/init"
}

# Copies files to the same places in the machine, with the libraries that programs and libraries link.
vm_copy() {
  local file
  for file in "$@" $(ldd "$@" 2>/dev/null | grep -o '/[^ :]*'); do
    [ -e "$vm_root$file" ] || install -D "$file" "$vm_root$file" || return
  done
}

# Copies programs by name, as the shell would find them.
vm_copy_programs() {
  local name path
  for name in "$@"; do
    path=$(PATH=$PATH:/usr/sbin:/sbin type -P -- "$name") || { vm_note "no program $name here"; return 1; }
    vm_copy "$path"
  done
}

# Copies kernel modules and what they need. The machine loads them, in this order, before it runs anything.
vm_modules() {
  local module file there
  for module in "$@"; do
    while read -r _ file _; do
      there=${file#"$PWD/$vm_kernel"}
      grep -qxF "$there" "$vm_root/modules" && continue
      install -D "$file" "$vm_root$there" && echo "$there" >>"$vm_root/modules" || return
    done < <(PATH=$PATH:/usr/sbin:/sbin modprobe -d "$PWD/$vm_kernel" -S "$vm_version" --show-depends "$module" |
      grep ^insmod)
  done
}

# Boots the machine, runs the shell script $vm_root/command in it and returns its exit status; what it prints appears
# as it comes and is kept in $vm_folder/console. What it writes to /dev/ttyS2 is in $vm_folder/output afterwards.
# $1: seconds until it is stopped, $2: MiB of memory, $3: processors. Status 125: the machine ended without a word.
vm_run() {
  (cd "$vm_root" && find . | cpio -o -H newc --quiet) >"$vm_folder/initramfs" || return
  rm -f "$vm_folder"/{status,output}
  timeout "$1" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -m "$2" -smp "$3" -nodefaults -display none -no-reboot \
    -serial stdio -serial file:"$vm_folder/status" -serial file:"$vm_folder/output" \
    -kernel "$vm_kernel/boot/vmlinuz-$vm_version" -initrd "$vm_folder/initramfs" \
    -append "console=ttyS0 quiet loglevel=3 panic=-1 random.trust_cpu=on" </dev/null | tee "$vm_folder/console"
  if [ -s "$vm_folder/status" ]; then return "$(tr -cd 0-9 <"$vm_folder/status")"; fi
  vm_note "the virtual machine ended before its command did (limit: $1 s)"
  return 125
}
