#!/bin/sh
# Compiles the kernels with clang or GCC. Used by `rvvbench build` inside the toolchain image, and by hand anywhere else.
#
#   build.sh ARCH SYSROOT OUT TARGET...
#
#   ARCH     riscv64, x86_64 or aarch64
#   SYSROOT  root of the system that the result runs on, with libtorch-dev and libstdc++ (/ for a native build)
#   OUT      folder for the results; objects go to OUT/obj
#   TARGET   ops    OUT/_ops.so, the extension that torch loads
#            tests  OUT/kernel_tests, static, torch-free
#            sanitized  OUT/kernel_tests_sanitized, the same with AddressSanitizer and UBSan, for where it is built
#            model  OUT/model_driver, static, torch-free: what `rvvbench kernels model` traces
#            bench  OUT/bench_driver, static, torch-free: what `rvvbench kernels bench` times
#            inductor  OUT/inductor_tests, static: holds the headers of rvv_inductor; riscv64 only
#            generated  OUT/NAME, static, for every OUT/NAME.cpp that bench/generated_graphs.py made; riscv64 only
#            tidy   no result: clang-tidy over the core, failing on what .clang-tidy calls an error
#
# Environment: CXX (clang++-22; a GCC must be one for ARCH), TIDY (clang-tidy-22), NM (llvm-nm-22, else nm), JOBS (number
# of processors), TORCH_ROOT (root of the system with torch's headers; SYSROOT).
set -eu

arch=$1 sysroot=${2%/} out=$3
shift 3
source=$(cd "$(dirname "$0")" && pwd)
cxx=${CXX:-clang++-22}
nm=${NM:-$(command -v llvm-nm-22 || echo nm)}
jobs=${JOBS:-$(nproc)}
obj=$out/obj
mkdir -p "$obj"

# GCC is built for one architecture and links with the linker of its own: its name says which.
case $("$cxx" --version) in
  *clang*) triple="--target=$arch-linux-gnu" linker=-fuse-ld=lld ;;
  *) triple='' linker='' ;;
esac
root="$triple ${sysroot:+--sysroot=$sysroot}"
common="$triple -std=c++17 -O3 -DNDEBUG -fPIC -fvisibility=hidden -Wall -Wextra -Werror=return-type"
common="$common -ffile-prefix-map=$source=kernels -I$source/csrc"
[ -z "$sysroot" ] || common="$common --sysroot=$sysroot -ffile-prefix-map=$sysroot="
written=
case $arch in
  riscv64)
    # The X60's timings order the instructions of every riscv64 build; older compilers do not know that core.
    tune=
    if "$cxx" $triple -mtune=spacemit-x60 -x c++ -fsyntax-only /dev/null 2>/dev/null; then
      tune=-mtune=spacemit-x60
    fi
    base="-march=rv64gc -mabi=lp64d $tune"
    vector="-march=rv64gcv_zicbop -mabi=lp64d $tune"
    half="-march=rv64gcv_zfh_zvfh_zicbop -mabi=lp64d $tune"
    # Clang 19 and GCC 15 have the intrinsics; what older ones build has no such kernels.
    brain="-march=rv64gcv_zvfbfwma_zicbop -mabi=lp64d $tune"
    if echo '#include <riscv_vector.h>
vfloat32m4_t f(vfloat32m4_t s, __bf16 a, vbfloat16m2_t w, size_t n) { return __riscv_vfwmaccbf16_vf_f32m4(s, a, w, n); }' |
      "$cxx" $triple ${sysroot:+--sysroot=$sysroot} $brain -x c++ -fsyntax-only - 2>/dev/null; then
      common="$common -DSGL_RVV_ZVFBFWMA"
    else
      brain=
    fi
    # The loops of attention are written in the order in which an in-order core should meet them; LLVM keeps to it
    # where it schedules from the top. Older LLVM and GCC order them by themselves.
    if "$cxx" $triple -mllvm -misched-prera-direction=topdown -x c++ -c /dev/null -o /dev/null 2>/dev/null; then
      written="-mllvm -misched-prera-direction=topdown"
    fi ;;
  x86_64) base=-march=x86-64 vector= half= brain= ;;
  aarch64) base=-march=armv8-a vector= half= brain= ;;
  *) echo "build.sh: unknown architecture $arch" >&2; exit 2 ;;
esac
# Torch's headers want C++20 and warn about themselves.
torch_flags="-std=c++20 -isystem $sysroot/usr/include/torch/csrc/api/include -Wno-unused-parameter"

# One line a file: the flags, then the file.
core_files() {
  for file in "$source"/csrc/core/*.cpp; do
    case $file in
      */attention_rvv.cpp) [ -z "$vector" ] || echo "$vector $written $file" ;;
      */attention_zvfh.cpp) [ -z "$half" ] || echo "$half $written $file" ;;
      *_rvv.cpp) [ -z "$vector" ] || echo "$vector $file" ;;
      *_zvfh.cpp) [ -z "$half" ] || echo "$half $file" ;;
      *_zvfbfwma.cpp) [ -z "$brain" ] || echo "$brain $file" ;;
      *_portable.cpp) echo "$base -ffp-contract=off $file" ;;
      *) echo "$base $file" ;;
    esac
  done
}

torch_files() {
  for file in "$source"/csrc/torch/*.cpp; do echo "$base $torch_flags $file"; done
}

# The program `$1`_driver and what both programs share.
bench_files() {
  for file in "$source"/bench/*.cpp; do
    case $file in
      */"$1"_driver.cpp) ;;
      *_driver.cpp) continue ;;
    esac
    echo "$base -I$source/bench $file"
  done
}

# Compiles the files named on standard input, `jobs` at a time; a failure of one is the failure of all.
compile() {
  while read -r line; do
    file=${line##* }
    echo "$cxx $common $line -c -o $obj/$(basename "$(dirname "$file")")-$(basename "$file" .cpp).o"
  done | xargs -P "$jobs" -I '{}' sh -c 'echo "{}" >&2; {}'
}

# A function that several objects define (inline, of a template) is linked from one of them. Were that one compiled for
# vectors, its code would run on machines without.
check_shared() {
  "$nm" -A --defined-only "$obj"/*.o | awk '
    $(NF - 1) == "W" {
      kind = "other"
      if (match($0, /_(rvv|zvfh|zvfbfwma)\.o:/)) kind = substr($0, RSTART, RLENGTH)
      if ($NF in seen && seen[$NF] != kind) { print "build.sh: shared between instruction sets: " $NF; wrong = 1 }
      seen[$NF] = kind
    }
    END { exit wrong }' >&2
}

# As TorchInductor 2.14 compiles what it generates: `scalar` as without a vector ISA, `vector` with the flags of VecRVV.
inductor_flags() {
  torch_root=${TORCH_ROOT:-$sysroot}
  echo "$root -O3 -DNDEBUG -fno-trapping-math -fmath-errno -ffp-contract=off -Wall -std=c++20 -fopenmp -Wno-unknown-pragmas"
  echo "-fno-omit-frame-pointer -DTORCH_INDUCTOR_CPP_WRAPPER -DSTANDALONE_TORCH_HEADER -DC10_USING_CUSTOM_GENERATED_MACROS"
  echo "-I$torch_root/usr/include -ffile-prefix-map=$source=kernels"
  # To clang omp.h comes with its own OpenMP library, which is not needed here.
  for folder in "$torch_root"/usr/lib/gcc/*/*/include; do echo "-idirafter $folder"; done
  [ -n "$triple" ] || echo "-fno-signed-zeros -fexcess-precision=fast -fno-tree-loop-vectorize"
  case $1 in
    vector)
      echo "-DCPU_CAPABILITY_NEON -DCPU_CAPABILITY=RVV -DCPU_CAPABILITY_RVV_OOT -march=rv64gcv_zicbop"
      echo "-I$source/python/rvv_inductor/src/rvv_inductor/include -include rvv_inductor/vec_rvv.h" ;;
    scalar) echo "-march=rv64gc" ;;
  esac
}

objects() { for folder in "$@"; do ls "$obj/$folder"-*.o; done; }

rm -f "$obj"/*.o
for target in "$@"; do
  case $target in
    ops)
      { torch_files; core_files; } | compile
      check_shared
      # shellcheck disable=SC2046
      $cxx $common $base -shared $linker -Wl,-z,defs -Wl,--build-id=sha1 -Wl,-soname,_ops.so -Wl,--as-needed \
        -o "$out/_ops.so" $(objects core torch) -ltorch_cpu -lc10 -lgomp ;;
    tests)
      { core_files; for file in "$source"/tests/*.cpp; do echo "$base $file"; done; } | compile
      check_shared
      $cxx $common $base -static $linker -o "$out/kernel_tests" $(objects core tests) ;;
    sanitized)
      checks="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
      { core_files; for file in "$source"/tests/*.cpp; do echo "$base $file"; done; } | sed "s/ [^ ]*$/ $checks&/" | compile
      $cxx $common $base $checks $linker -o "$out/kernel_tests_sanitized" $(objects core tests) ;;
    model | bench)
      rm -f "$obj"/bench-*_driver.o
      { core_files; bench_files "$target"; } | compile
      check_shared
      $cxx $common $base -static $linker -o "$out/${target}_driver" $(objects core bench) ;;
    inductor)
      $cxx $(inductor_flags vector) -c -o "$obj/inductor_tests.o" "$source/tests/rvv_inductor/vec_tests.cpp"
      $cxx $root -static $linker -o "$out/inductor_tests" "$obj/inductor_tests.o" ;;
    generated)
      $cxx $root -O2 -std=c++20 -c -o "$obj/generated_driver.o" "$source/bench/generated_driver.cpp"
      for file in "$out"/*-scalar.cpp "$out"/*-rvv.cpp; do
        name=$(basename "$file" .cpp)
        case $name in *-rvv) kind=vector ;; *) kind=scalar ;; esac
        echo "$cxx" $(inductor_flags "$kind") "-c -o $obj/$name.o $file &&" \
          "$cxx $root -static $linker -o $out/$name $obj/$name.o $obj/generated_driver.o"
      done | xargs -P "$jobs" -I '{}' sh -c '{}' ;;
    tidy)
      core_files | while read -r line; do
        file=${line##* }
        echo "${TIDY:-clang-tidy-22} --quiet --config-file=$source/.clang-tidy $file -- $common ${line% *}"
      done | xargs -P "$jobs" -I '{}' sh -c 'echo "{}" >&2; {}' ;;
    *) echo "build.sh: unknown target $target" >&2; exit 2 ;;
  esac
done
