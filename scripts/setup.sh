#!/usr/bin/env bash
# Makes this machine able to run rvvbench: Debian packages, binfmt registration for riscv64, and the Python environment in
# .venv. Says what it changes before it changes it, asks each tool what it can do instead of trusting its name, and is
# silent when nothing is missing.
#
#   scripts/setup.sh            install what is missing
#   scripts/setup.sh --check    only say what is missing; exit 3 when something is
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ulimit -c 0 # a probe that dies of an illegal instruction is an answer, not a crash

qemu_cpu="rv64,v=true,vlen=256,zvfh=true"
binfmt=/proc/sys/fs/binfmt_misc
backports=/etc/apt/sources.list.d/rvvbench-backports.sources
arch=$(uname -m)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { echo "setup: $*" >&2; }

fail() {
    say "$*"
    exit 3
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "needs root for: $* (run it as root, or install sudo)"
    fi
}

# --- What the machine can do -----------------------------------------------------------------------------------------

at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; } # at_least 4.3 4.10

has_podman() {
    local version
    version=$(podman --version 2>/dev/null) && at_least 4.3 "${version##* }"
}

# crun refuses the mixed cgroup v1/v2 mounts of machines without systemd; runc takes every layout.
has_container_runtime() {
    runc --version >/dev/null 2>&1 ||
        { crun --version >/dev/null 2>&1 && [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; }
}

# The exit code of the probe is VLEN in bytes: 32 at VLEN 256.
exit_code_of() {
    local code=0
    "$@" >/dev/null 2>&1 || code=$?
    echo "$code"
}

qemu() { command -v qemu-riscv64 || command -v qemu-riscv64-static; }

has_qemu() {
    local program
    program=$(qemu) && [ "$(exit_code_of "$program" -cpu "$qemu_cpu" "$work/probe")" = 32 ]
}

# Without the flag F the kernel looks for the emulator inside the container, where there is none.
has_binfmt() {
    grep -qs '^flags:.*F' "$binfmt"/*riscv64* && [ "$(QEMU_CPU=$qemu_cpu exit_code_of "$work/probe")" = 32 ]
}

has_python_venv() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

# PyPI has no numpy, pandas or PyYAML built for riscv64: there Debian's are used, so Debian's Python is too. Elsewhere the
# newest that works; a name on PATH can be a shim for a version that is not there, so each is tried.
python() {
    local name
    if [ "$arch" = riscv64 ]; then
        has_python_venv /usr/bin/python3 && echo /usr/bin/python3
        return
    fi
    for name in python3.14 python3.13 python3.12 python3.11 /usr/bin/python3; do
        if has_python_venv "$name"; then
            command -v "$name"
            return
        fi
    done
    return 1
}

has_python_system_packages() { /usr/bin/python3 -c 'import pandas, yaml' 2>/dev/null; }

# Lines "what is missing|packages that bring it".
missing() {
    has_podman || echo "podman 4.3 or newer|podman"
    has_container_runtime || echo "a container runtime that takes this machine's cgroups|runc"
    mmdebstrap --version >/dev/null 2>&1 || echo "mmdebstrap (builds root filesystems)|mmdebstrap"
    arch-test -n >/dev/null 2>&1 || echo "arch-test (mmdebstrap asks it for foreign architectures)|arch-test"
    git --version >/dev/null 2>&1 || echo "git|git"
    [ -s /etc/ssl/certs/ca-certificates.crt ] || echo "certificate authorities|ca-certificates"
    python >/dev/null || echo "Python 3.11 or newer with venv|python3 python3-venv"
    if [ "$arch" = riscv64 ]; then
        has_python_system_packages || echo "pandas and PyYAML for riscv64|python3-pandas python3-yaml"
    else
        has_qemu || echo "QEMU with RVV 1.0 and zvfh|$(qemu_packages)"
    fi
    if [ "$(id -u)" -ne 0 ]; then
        newuidmap --help >/dev/null 2>&1 || command -v newuidmap >/dev/null ||
            echo "newuidmap (containers without root)|uidmap"
    fi
}

# --- Debian packages -------------------------------------------------------------------------------------------------

# shellcheck disable=SC1091
os_release() { (. /etc/os-release && eval "echo \"\${$1:-}\"") 2>/dev/null || true; }

is_debian() { command -v apt-get >/dev/null && [[ " $(os_release ID) $(os_release ID_LIKE) " == *" debian "* ]]; }

# Debian 12 has QEMU 7.2, which knows no zvfh; its backports have 10.
needs_backports() { [ "$(os_release ID)-$(os_release VERSION_CODENAME)" = debian-bookworm ] && ! has_qemu; }

qemu_packages() { echo "qemu-user-static"; }

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" >&2
}

add_backports() {
    local stanza
    stanza=$(scripts/apt-backports.sh "$(os_release VERSION_CODENAME)") || fail "cannot find out where backports are"
    if [ -z "$stanza" ] || [ "$stanza" = "$(cat "$backports" 2>/dev/null)" ]; then
        return
    fi
    say "adds the apt source $backports:"
    printf '%s\n' "$stanza" | sed 's/^/    /' >&2
    printf '%s\n' "$stanza" | as_root tee "$backports" >/dev/null
}

install_packages() { # $1: lines of missing()
    local packages backported=""
    packages=$(cut -d '|' -f 2 <<<"$1" | tr '\n' ' ')
    if needs_backports; then
        backported=$(qemu_packages)
        packages=${packages//$backported/}
        add_backports
    fi
    # shellcheck disable=SC2086  # package names, split on purpose
    say "installs with apt-get:" $packages $backported
    apt update || say "apt-get update complained (see above); goes on with the package lists there are"
    # shellcheck disable=SC2086
    [ -z "${packages// /}" ] || apt install -y --no-install-recommends $packages
    # shellcheck disable=SC2086
    [ -z "$backported" ] ||
        apt install -y --no-install-recommends -t "$(os_release VERSION_CODENAME)-backports" $backported
}

# --- binfmt ----------------------------------------------------------------------------------------------------------

register_binfmt() {
    local conf=/usr/lib/binfmt.d/qemu-riscv64.conf line magic mask
    magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xf3\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    say "tells the kernel to run riscv64 programs with $(qemu) (binfmt_misc, qemu-riscv64)"
    [ -d "$binfmt" ] || as_root modprobe binfmt_misc || fail "this kernel has no binfmt_misc"
    [ -e "$binfmt/register" ] || as_root mount -t binfmt_misc binfmt_misc "$binfmt"
    line=$(grep -s '^:qemu-riscv64:.*F' "$conf" || echo ":qemu-riscv64:M::$magic:$mask:$(qemu):F")
    if [ -e "$binfmt/qemu-riscv64" ]; then
        as_root sh -c "echo -1 > $binfmt/qemu-riscv64" # an entry without F, or for an older emulator
    fi
    printf '%s' "$line" | as_root tee "$binfmt/register" >/dev/null
}

# --- Python environment ----------------------------------------------------------------------------------------------

# The environment is complete when this text stands in its stamp file.
venv_stamp() { sha256sum requirements.lock pyproject.toml scripts/setup.sh && pwd; }

has_venv() {
    [ "$(venv_stamp)" = "$(cat .venv/rvvbench.stamp 2>/dev/null)" ] && .venv/bin/python -c 'import rvvbench' 2>/dev/null
}

# requirements.lock without the packages that riscv64 takes from Debian.
lock_for_this_machine() {
    if [ "$arch" = riscv64 ]; then
        awk '/^[a-zA-Z]/ { skip = $0 ~ /^(numpy|pandas|pyyaml|clang-format)==/ } !skip' requirements.lock
    else
        cat requirements.lock
    fi
}

make_venv() {
    local interpreter pip=(.venv/bin/python -m pip install -q --disable-pip-version-check --no-input)
    interpreter=$(python)
    say "makes the Python environment .venv from requirements.lock with $interpreter"
    if ! has_python_venv .venv/bin/python; then
        rm -rf .venv
        if [ "$arch" = riscv64 ]; then
            "$interpreter" -m venv --system-site-packages .venv
        else
            "$interpreter" -m venv .venv
        fi
    fi
    lock_for_this_machine >"$work/requirements.lock"
    "${pip[@]}" --no-deps --only-binary :all: --require-hashes -r "$work/requirements.lock"
    "${pip[@]}" --no-deps --no-build-isolation -e .
    venv_stamp >.venv/rvvbench.stamp
}

# --- All of it -------------------------------------------------------------------------------------------------------

scripts/rvv-probe.sh >"$work/probe"
chmod +x "$work/probe"
lacks=$(missing)

if [ "${1:-}" = --check ]; then
    [ -z "$lacks" ] || cut -d '|' -f 1 <<<"$lacks"
    [ "$arch" = riscv64 ] || has_binfmt || echo "binfmt registration of riscv64 with the flag F"
    has_venv || echo "the Python environment .venv"
    [ -z "$lacks" ] && { [ "$arch" = riscv64 ] || has_binfmt; } && has_venv && exit 0
    exit 3
fi

if [ -n "$lacks" ]; then
    say "this machine lacks:"
    cut -d '|' -f 1 <<<"$lacks" | sed 's/^/    /' >&2
    is_debian || fail "this is not Debian: install by hand what is listed above, then run this again"
    install_packages "$lacks"
    lacks=$(missing)
    [ -z "$lacks" ] || fail "still lacking after apt-get: $(cut -d '|' -f 1 <<<"$lacks" | paste -sd ';')"
fi
if [ "$arch" != riscv64 ] && ! has_binfmt; then
    register_binfmt
    has_binfmt || fail "riscv64 programs still do not run; see $binfmt/qemu-riscv64"
fi
has_venv || make_venv
