#!/bin/sh
# Everything is installed. $1 is the root filesystem.
set -eu
root=$1

if [ -n "$RVVBENCH_TWIN" ]; then
	for name in dash perl; do
		if ! cmp -s "$RVVBENCH_TWIN/usr/bin/$name" "$root/usr/bin/$name"; then
			echo "/usr/bin/$name was replaced while packages were installed" >&2
			exit 1
		fi
	done
	# By rename, and perl's second name is a hard link of the first.
	for name in dash perl; do
		mv -f "$root/.rvvbench/$name" "$root/usr/bin/$name"
	done
	for python in "$root"/.rvvbench/bin/python3.*; do
		path=/usr/bin/${python##*/}
		rm "$root$path"
		chroot "$root" dpkg-divert --quiet --local --rename --remove "$path"
		if [ ! -x "$root$path" ]; then
			echo "no package brought $path: its twin is of another version" >&2
			exit 1
		fi
	done
fi
for tool in /usr/bin/py3compile /usr/bin/py3clean; do
	rm "$root$tool"
	chroot "$root" dpkg-divert --quiet --local --rename --remove "$tool"
done

cp -R --preserve=mode,timestamps "$RVVBENCH_OVERLAY/." "$root/"

# A fixed number of shards, each in a process of its own: what a process compiled before can show in the bytes it writes.
shards=8
python=$(cd "$root/usr/bin" && echo python3.*[0-9])
[ -z "$RVVBENCH_TWIN" ] || python=/.rvvbench/bin/$python
if [ -n "$RVVBENCH_BYTE_COMPILE" ]; then
	find "$root/usr" -name __pycache__ -type d -prune -exec rm -r {} +
	set -f # the patterns mean folders of the root filesystem
	seq 0 $((shards - 1)) | xargs -P "$(nproc)" -I{} chroot "$root" env -i PATH=/usr/bin PYTHONHASHSEED=0 \
		"$python" -E -S /.rvvbench/byte_compile.py {} $shards $RVVBENCH_BYTE_COMPILE
	set +f
fi

cp "$root/var/lib/dpkg/status" "$RVVBENCH_STATUS"

# What belongs to this host or to this build: where packages came from, the name, the resolver.
rm -f "$root/etc/apt/sources.list" "$root"/etc/apt/sources.list.d/* "$root/etc/apt/apt.conf.d/99mmdebstrap"
rm -f "$root/etc/dpkg/dpkg.cfg.d/rvvbench-build" "$root/etc/hostname" "$root/etc/resolv.conf"
rm -f "$root"/var/cache/debconf/*-old "$root"/var/lib/dpkg/*-old "$root/var/cache/ldconfig/aux-cache"
if [ -f "$root/.rvvbench/added" ]; then
	while read -r path; do
		rm -r "${root:?}$path"
	done <"$root/.rvvbench/added"
fi
rm -r "$root/.rvvbench"
