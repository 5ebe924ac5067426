#!/bin/sh
# Essential packages are installed, the rest follows. $1 is the root filesystem.
set -eu
root=$1

divert() {
	chroot "$root" dpkg-divert --quiet --local --rename --divert "$1.distrib" --add "$1"
}

# Byte-compiling package by package is the slowest part of an installation, and its results depend on time stamps: it is
# done once, at the end, by byte_compile.py.
for tool in /usr/bin/py3compile /usr/bin/py3clean; do
	divert "$tool"
	ln -s true "$root$tool"
done
[ -n "$RVVBENCH_TWIN" ] || exit 0

# Packages call the interpreter by its full path.
for python in "$root"/.rvvbench/bin/python3.*; do
	divert "/usr/bin/${python##*/}"
	cp "$python" "$root/usr/bin/${python##*/}"
done
# Interpreters of maintainer scripts, named by full path too. Both belong to essential packages, which nothing replaces from
# here on.
for name in dash perl; do
	mv "$root/usr/bin/$name" "$root/.rvvbench/$name"
	cp -L "$RVVBENCH_TWIN/usr/bin/$name" "$root/usr/bin/$name"
done
