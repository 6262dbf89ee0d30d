#!/bin/sh
# setup.sh BUILD [CMAKE_ARGS...]: configures BUILD, after installing what is missing (Debian and Ubuntu, as root or with
# sudo that asks nothing). Elsewhere it says what is missing and how to get it, exits 1, and leaves everything as it was.
# What counts is what CMake finds, wherever it came from; a package manager is called only when something is not there.
set -u
cd "$(dirname "$0")" || exit 1
build=${1:?"usage: setup.sh BUILD [CMAKE_ARGS...]"}
shift

# name, header, and the package in Debian, Fedora and Homebrew
packages='
compiler       -                       g++                      gcc-c++         gcc
cmake          -                       cmake                    cmake           cmake
xtl            xtl/xtl_config.hpp      xtl-dev                  xtl-devel       xtl
xsimd          xsimd/xsimd.hpp         libxsimd-dev             xsimd-devel     xsimd
xtensor        xtensor                 libxtensor-dev           xtensor-devel   xtensor
cblas          cblas.h                 libopenblas-openmp-dev   openblas-devel  openblas
Catch2         catch2                  catch2                   catch-devel     catch2
nlohmann_json  nlohmann/json.hpp       nlohmann-json3-dev       json-devel      nlohmann-json
CLI11          CLI/CLI.hpp             libcli11-dev             cli11-devel     cli11
'
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

column() { # column N NAME...: the Nth column of the rows of NAMEs
    n=$1
    shift
    for name; do echo "$packages" | awk -v name="$name" -v n="$n" '$1 == name { print $n }'; done | xargs
}

has_header() {
    for prefix in "${CONDA_PREFIX:-/usr}" /usr /usr/local /opt/homebrew; do
        for folder in "$prefix/include" "$prefix/include/openblas" "$prefix/include/$(uname -m)-linux-gnu"; do
            [ -e "$folder/$1" ] && return 0
        done
    done
    return 1
}

# Configures BUILD. When that fails for want of something, names it in $missing; what is there but slow, in $slow.
configure() {
    missing=
    slow=
    for compiler in ${CXX:-c++ g++ clang++}; do command -v "$compiler" >/dev/null && break; done
    command -v "$compiler" >/dev/null || missing=compiler
    version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
    case $version in '' | [0-2].* | 3.[0-9].* | 3.1[0-9].* | 3.2[01].*) missing="$missing cmake" ;; esac
    if [ -n "$missing" ]; then # nothing to ask CMake with: look for the headers in the usual places
        for name in $(echo "$packages" | awk '$2 != "-" { print $1 }'); do
            has_header "$(column 2 "$name")" || missing="$missing $name"
        done
        return 1
    fi
    existed=$(ls -d "$build" 2>/dev/null)
    if cmake -S . -B "$build" "$@" >"$log" 2>&1; then
        slow=$(sed -n 's/^-- slow: //p' "$log")
        return 0
    fi
    [ -n "$existed" ] || rm -rf "$build"
    missing=$(sed -n 's/^-- missing: //p' "$log")
    return 1
}

configure "$@" && [ -z "$slow" ] && exit 0

# shellcheck disable=SC2086
wanted=$(echo $missing $slow)
if [ -n "$wanted" ]; then
    # shellcheck disable=SC2046,SC2086
    if ./apt.sh $(column 3 $wanted); then
        # pictures, faster products, several machines, sentence embeddings
        for extra in gnuplot-nox libdnnl-dev 'libopenmpi-dev openmpi-bin' libicu-dev; do
            # shellcheck disable=SC2086
            ./apt.sh $extra || echo "setup: no $extra here; going on without it"
        done
        configure "$@" && [ -z "$slow" ] && exit 0
    fi
fi

if [ -n "$slow" ]; then
    echo "setup: going on with a slow $slow; matrix products take ten times as long as with OpenBLAS"
    exit 0
fi
if [ -z "$missing" ]; then
    cat "$log" >&2
    exit 1
fi
# shellcheck disable=SC2086
cat >&2 <<END
setup: missing: $(echo $missing | sed 's/ /, /g; s/compiler/a C++20 compiler/; s/cmake/CMake 3.22 or newer/')
  Debian, Ubuntu  apt-get install $(column 3 $missing)
  Fedora          dnf install $(column 4 $missing)
  Homebrew        brew install $(column 5 $missing)
  conda-forge     conda env create -f environment.yml && conda activate tapegrad
  elsewhere       install them in a prefix, and add CMAKE_ARGS=-DCMAKE_PREFIX_PATH=PREFIX to the make command
END
exit 1
