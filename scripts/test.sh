#!/usr/bin/env bash
# Runs the tests stage by stage, stops at the first stage that fails, and ends with the time each took. Images that a later
# stage needs are built beside lint and unit tests, for each of them keeps one core busy.
#
#   scripts/test.sh             what `make test` runs
#   scripts/test.sh --full      and the tests marked `long`
#   scripts/test.sh lint unit   these stages only
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PWD/.venv/bin:$PATH

stage_lint() {
    ruff check . && ruff format --check . && mypy && format_of_kernels
}

format_of_kernels() {
    if [ "$(uname -m)" = riscv64 ] && ! command -v clang-format >/dev/null; then
        echo "clang-format: not checked here, its wheel does not exist for riscv64"
        return
    fi
    find kernels \( -name '*.cpp' -o -name '*.h' \) -exec clang-format --dry-run --Werror {} +
}

stage_unit() { pytest -m "not container and not emulated and not long"; }

build_images() {
    local build="rvvbench image build --accept-expired --accept-rebuilt --if-missing" host
    case $(uname -m) in
        x86_64) host=amd64 ;;
        aarch64) host=arm64 ;;
        *) host=$(uname -m) ;;
    esac
    $build toolchain && $build runtime --arch "$host" || return
    [ "$host" = riscv64 ] || $build runtime --arch riscv64
}

images_log=""
images_pid=""

begin_images() {
    images_log=$(mktemp)
    build_images >"$images_log" 2>&1 &
    images_pid=$!
    trap end_images EXIT
}

end_images() {
    if [ -n "$images_pid" ]; then
        # The one that works first: the shell around it waits for it. Neither is there where it has ended.
        pkill -TERM -P "$images_pid" || true
        kill "$images_pid" 2>/dev/null || true
        wait "$images_pid" || true
    fi
    rm -f "$images_log"
}

stage_images() {
    if [ -z "$images_pid" ]; then
        build_images
        return
    fi
    # What it has said, and what it says until it ends.
    tail -n +1 -f --pid="$images_pid" "$images_log"
    local verdict=0
    wait "$images_pid" || verdict=$?
    images_pid=""
    return "$verdict"
}

stage_container() { pytest -m "container and not emulated and not long"; }

stage_emulated() { pytest -m "emulated and not long"; }

# Exit code 5 of pytest: no test is marked.
stage_long() { pytest -m long || [ $? -eq 5 ]; }

case ${1:-} in
    "") stages=(lint unit images container emulated) ;;
    --full) stages=(lint unit images container emulated long) ;;
    *) stages=("$@") ;;
esac

report=""
case " ${stages[*]} " in *" unit images "*) begin_images ;; esac
for stage in "${stages[@]}"; do
    echo "=== $stage"
    begin=$SECONDS
    verdict=ok
    # In a condition bash ignores `set -e`: stages join their commands with &&.
    "stage_$stage" || verdict=FAILED
    report+=$(printf '%-10s %4d s  %s' "$stage" $((SECONDS - begin)) "$verdict")$'\n'
    [ "$verdict" = ok ] || break
done
printf '\n%s%-10s %4d s\n' "$report" total "$SECONDS"
if [ "$verdict" != ok ]; then
    echo "stage '$stage' failed; run it alone with: scripts/test.sh $stage" >&2
    exit 1
fi
