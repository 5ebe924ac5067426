#!/bin/sh
# Essential packages are extracted, nothing is configured yet. $1 is the root filesystem.
#
# For a foreign architecture, programs that dpkg and maintainer scripts start by the hundred come from the host's
# architecture: the same versions from the same suite, run by the kernel directly instead of by the emulator. They live in
# a folder that is first on PATH and is removed at the end, with the libraries and the loader that they need.
set -euf
root=$1

# Told to dpkg here and not by mmdebstrap, which would pass every essential package through a filter that takes longer
# than all the rest of this stage. What it has extracted already is removed.
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/rvvbench-build"
for pattern in $RVVBENCH_EXCLUDE; do
	echo "path-exclude=$pattern" >>"$root/etc/dpkg/dpkg.cfg.d/rvvbench"
done
set +f
for pattern in $RVVBENCH_EXCLUDE; do
	rm -rf "$root"$pattern
done

mkdir "$root/.rvvbench"
cp "$RVVBENCH_HOOKS/byte_compile.py" "$root/.rvvbench/"
[ -n "$RVVBENCH_TWIN" ] || exit 0
twin=$RVVBENCH_TWIN
mkdir "$root/.rvvbench/bin"
for path in "$twin"/usr/bin/*; do
	case ${path##*/} in
	# dpkg knows its own architecture and must be the target's; so must what names the machine.
	dpkg | dpkg-query | dpkg-divert | dpkg-statoverride | dpkg-trigger | dpkg-realpath | dpkg-maintscript-helper) ;;
	arch | uname | savelog | ischroot | run-parts) ;;
	# Byte-compiling waits for the end, see essential.sh.
	py3* | pydoc*) ;;
	*) cp -P "$path" "$root/.rvvbench/bin/" ;;
	esac
done
for library in "$twin"/usr/lib/*-linux-gnu*; do
	if [ -e "$root/usr/lib/${library##*/}" ]; then
		echo "the root filesystem has /usr/lib/${library##*/} already" >&2
		exit 1
	fi
	cp -a "$library" "$root/usr/lib/"
	echo "/usr/lib/${library##*/}" >>"$root/.rvvbench/added"
done
# Loaders lie in /lib64 (amd64) or /lib (arm64, riscv64).
if [ -d "$twin/usr/lib64" ]; then
	if [ -e "$root/usr/lib64" ]; then
		echo "the root filesystem has /usr/lib64 already" >&2
		exit 1
	fi
	mkdir "$root/usr/lib64"
	for loader in "$twin"/usr/lib64/ld-linux*; do
		cp -L "$loader" "$root/usr/lib64/"
	done
	echo /usr/lib64 >>"$root/.rvvbench/added"
	if [ ! -L "$root/lib64" ]; then
		ln -s usr/lib64 "$root/lib64"
		echo /lib64 >>"$root/.rvvbench/added"
	fi
fi
for loader in "$twin"/usr/lib/ld-linux*; do
	[ -e "$loader" ] || continue
	cp -L "$loader" "$root/usr/lib/"
	echo "/usr/lib/${loader##*/}" >>"$root/.rvvbench/added"
done
