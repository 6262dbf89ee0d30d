#!/usr/bin/env bash
# A project outside the tree uses the installed libraries: found by CMake and by pkg-config, compiled by g++ and clang,
# for this machine and for any, with the static libraries and with the shared one, which takes what the processor has.
# Arguments: the build and the source folder.
source "$(dirname "$0")/support/check.sh" "$2/tests/consumer" || exit 1
build=$1 source=$2 prefix=$folder/prefix
found_in=$(sed -n 's/^CMAKE_PREFIX_PATH:[^=]*=//p' "$build/CMakeCache.txt")  # where the user has xtensor, say

cp -r "$program" "$folder/consumer"
model=$source/tests/reference/tiny_bert  # for the page's program, where there is ICU
cmake --install "$build" --prefix "$prefix" > "$folder/log" 2>&1 || fail "install: $(tail -3 "$folder/log")"
for file in include/tapegrad/tapegrad.hpp include/tapegrad/autograd/tape.hpp include/tapegrad/optim/adam.hpp \
  include/tapegrad/distributed/ranks.hpp; do
  [[ -f $prefix/$file ]] || fail "not installed: $file"
done
grep -rl "$source" "$prefix" --include='*.cmake' --include='*.pc' && fail "these name the source folder"

if [[ -f $prefix/include/tapegrad/nn/sentence_encoder.hpp ]]; then
  awk '/^```cpp/ {on = 1; next} /^```/ {on = 0} on' "$source/docs/programs/sentence_search.md" \
    > "$folder/consumer/sentences.cpp"
else
  echo "install: no ICU here: the sentence encoder is not tried"
fi

compilers=(g++)
clang=$(compgen -c clang++ | grep -E '^clang\+\+(-[0-9]+)?$' | sort -V | tail -1)
if [[ -n $clang ]]; then compilers+=("$clang"); else echo "install: no clang++ here: the consumer is built by g++ only"; fi

# consumer NAME COMPILER PREFIX FLAGS...: configured, built and run.
consumer() {
  local name=$1 compiler=$2 from=$3
  shift 3
  local out=$folder/$name
  cmake -S "$folder/consumer" -B "$out" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$from;$found_in" \
    -DCMAKE_CXX_FLAGS="-O1 -Wall -Wextra -Werror $*" > "$folder/log" 2>&1 &&
    cmake --build "$out" --parallel 2 > "$folder/log" 2>&1 || fail "$name: $(tail -20 "$folder/log")"
  local ran=0
  for made in "$out/training" "$out/ranks" "$out/inside_xtensor" "$out/sentences"; do
    [[ -x $made ]] || continue
    "$made" "$model" > "$folder/said" 2>&1 || fail "$name: ${made##*/}: exit $? and $(cat "$folder/said")"
    ran=$((ran + 1))
  done
  [[ $ran -gt 0 ]] || fail "$name: nothing was built"
}

for compiler in "${compilers[@]}"; do
  consumer "static_${compiler%%+*}" "$compiler" "$prefix"  # without -march=native, which the libraries may have
done

# By pkg-config, and for this machine's processor.
if command -v pkg-config > /dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tapegrad.pc)")
  export PKG_CONFIG_PATH LC_ALL=C
  [[ $(pkg-config --modversion tapegrad) == "$(sed -n 's/.*TAPEGRAD_VERSION "\(.*\)"/\1/p' \
    "$source/autograd/version.hpp")" ]] || fail "pkg-config's version is not the header's"
  # shellcheck disable=SC2046
  g++ -std=c++20 -O1 -march=native -Wno-maybe-uninitialized "$folder/consumer/inside_xtensor.cpp" -o "$folder/by_pkg" \
    $(pkg-config --cflags --libs tapegrad-double) > "$folder/log" 2>&1 && "$folder/by_pkg" > "$folder/log" 2>&1 ||
    fail "pkg-config: $(tail -5 "$folder/log")"

  # Float where double was meant is a link error, not a wrong number.
  printf '#include <tapegrad/tapegrad.hpp>\nint main() { return int(tapegrad::ones({1}).size()) - 1; }\n' > "$folder/mixed.cpp"
  # shellcheck disable=SC2046
  g++ -std=c++20 -O0 $(pkg-config --cflags tapegrad) "$folder/mixed.cpp" -o "$folder/mixed" \
    $(pkg-config --libs tapegrad-double) > "$folder/log" 2>&1 && fail "a float program was linked with the double library"
  grep -q 'undefined reference' "$folder/log" || fail "float and double: $(tail -3 "$folder/log")"
else
  echo "install: no pkg-config here: its files are not tried"
fi

# As a part of another project, the same source compiles.
mkdir "$folder/part"
cat > "$folder/part/CMakeLists.txt" << END
cmake_minimum_required(VERSION 3.22)
project(part LANGUAGES CXX)
add_subdirectory("$source" tapegrad)
add_executable(part "$folder/consumer/training.cpp")
target_link_libraries(part tapegrad::tapegrad)
END
cmake -S "$folder/part" -B "$folder/part/build" -G 'Unix Makefiles' -DCMAKE_CXX_FLAGS=-O0 \
  -DCMAKE_PREFIX_PATH="$found_in" > "$folder/log" 2>&1 && make -C "$folder/part/build" help > "$folder/log" 2>&1 &&
  make -C "$folder/part/build" "$(sed -n 's/^\.\.\. \(.*training\)\.o$/\1.o/p' "$folder/log")" > "$folder/log" 2>&1 ||
  fail "add_subdirectory: $(tail -5 "$folder/log")"

# The shared library, of float alone and quickly compiled: what is tried is that it is whole. It is for any processor, and
# the consumer for this one, the other way round than above.
cmake -S "$source" -B "$folder/shared" -DBUILD_SHARED_LIBS=ON -DTAPEGRAD_DOUBLE=OFF -DTAPEGRAD_TESTS=OFF \
  -DTAPEGRAD_EXAMPLES=OFF -DTAPEGRAD_BENCHMARKS=OFF -DTAPEGRAD_NATIVE=OFF -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_CXX_FLAGS=-O1 -DCMAKE_PREFIX_PATH="$found_in" > "$folder/log" 2>&1 &&
  cmake --build "$folder/shared" --parallel "$(nproc)" > "$folder/log" 2>&1 &&
  cmake --install "$folder/shared" --prefix "$folder/shared_prefix" > "$folder/log" 2>&1 ||
  fail "shared: $(grep -m 3 'rror' "$folder/log")"
[[ -n $(find "$folder/shared_prefix" -name libtapegrad.so -type l) ]] || fail "no shared library was installed"
for compiler in "${compilers[@]}"; do
  consumer "shared_${compiler%%+*}" "$compiler" "$folder/shared_prefix" -march=native
done

# One library for each level of x86-64, without instructions of a higher one; the loader takes the best that there is.
libs=$(dirname "$(find "$folder/shared_prefix" -name libtapegrad.so)")
if [[ $(uname -sm) == "Linux x86_64" ]]; then
  consumer any_cpu g++ "$folder/shared_prefix"
  # level FOLDER REGISTERS EMULATED_CPU: what the CPU runs is from the folder, which names no such registers.
  level() {
    local library
    library=$(find "$libs/$1" -maxdepth 1 -name 'libtapegrad.so.*.*.*')
    if command -v objdump > /dev/null; then
      objdump -d "$library" > "$folder/code" && ! grep -q "$2" "$folder/code" || fail "$library names $2"
    fi
    [[ -n $emulator ]] || return
    env -u OPENBLAS_CORETYPE "$emulator" -cpu "$3" -E LD_DEBUG=libs "$folder/any_cpu/training" > "$folder/log" 2>&1 ||
      fail "on $3: exit $?, $(grep -v '^ *[0-9]*:' "$folder/log" | tail -3)"
    grep 'calling init.*libtapegrad' "$folder/log" | grep -qF "$libs/$1libtapegrad" ||
      fail "on $3: $(grep 'calling init.*libtapegrad' "$folder/log"), not from $1"
  }
  emulator=$(command -v qemu-x86_64) || echo "install: no qemu-x86_64 here: older processors are not tried"
  level "" '%[yz]mm' Conroe  # on still older ones OpenBLAS itself ends by an illegal instruction
  level glibc-hwcaps/x86-64-v2/ '%[yz]mm' Nehalem
  level glibc-hwcaps/x86-64-v3/ '%zmm' Haswell
  [[ -n $(find "$libs/glibc-hwcaps/x86-64-v4" -name 'libtapegrad.so.*') ]] || fail "no library of level x86-64-v4"
fi
exit $failures
