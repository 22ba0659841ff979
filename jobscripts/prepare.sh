# shellcheck shell=bash
# Sourced by quickstart.sh, tests/run.sh and .ci/run: makes sure that what Sluice is built from is
# there. Root (or `sudo -n`) on a system with apt installs what is missing; everybody else is told
# what is missing and by which names it goes. Says nothing and changes nothing when all is there.
#
#   prepare build          to build and run Sluice and configs/quickstart
#   prepare build tests    also to build and run the tests
#   prepare build tests ci also what only .ci/run needs
#
# The one list of what is needed. Each line: for what | how to find it | Debian package | what a
# site without apt must provide. `optional` things only make building faster.
prepare_table='
build    | command g++            | g++                | a C++20 compiler: GCC 12 or newer, or Clang 14
build    | command cmake          | cmake              | CMake 3.25 or newer
build    | command ninja          | ninja-build        | Ninja
build    | command pkg-config     | pkg-config         | pkg-config
build    | mpi mpi.h              | libopenmpi-dev     | Open MPI 4.1 with its header files and mpicc
build    | command mpirun         | openmpi-bin        | the launcher of Open MPI
build    | command h5c++          | libhdf5-dev        | HDF5 1.10 or newer with its high-level and C++ parts
build    | module yaml-cpp        | libyaml-cpp-dev    | yaml-cpp 0.7 or newer
build    | module hwloc           | libhwloc-dev       | hwloc 2
build    | module libxxhash       | libxxhash-dev      | xxHash 0.8
build    | header nlohmann/json.hpp | nlohmann-json3-dev | nlohmann-json 3
build    | module simdjson        | libsimdjson-dev    | simdjson 3
build    | header CLI/CLI.hpp     | libcli11-dev       | CLI11 2
optional | command ccache         | ccache             | ccache
optional | command ld.mold        | mold               | mold
tests    | header doctest/doctest.h | doctest-dev      | doctest 2.4
tests    | command pgrep          | procps             | pgrep
tests    | command h5dump         | hdf5-tools         | the HDF5 command-line tools
tests    | python jsonschema      | python3-jsonschema | the Python module jsonschema
tests    | python yaml            | python3-yaml       | the Python module yaml
ci       | command clang++-14     | clang-14           | Clang 14
ci       | file /usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.asan-x86_64.a | libclang-rt-14-dev | its sanitizer run-time
ci       | command clang-format-14 | clang-format-14   | clang-format 14
ci       | command clang-tidy-14  | clang-tidy-14      | clang-tidy 14
ci       | command zsh            | zsh                | zsh, for its completion
ci       | command fish           | fish               | fish, for its completion
'

# prepare_found KIND NAME: is it there?
prepare_found() {
  case $1 in
    command) command -v "$2" >/dev/null ;;
    module) pkg-config --exists "$2" 2>/dev/null ;;
    header) printf '#include <%s>\n' "$2" | ${CXX:-c++} -std=c++20 -E -x c++ - >/dev/null 2>&1 ;;
    mpi) printf '#include <%s>\n' "$2" | mpicc -E -x c - >/dev/null 2>&1 ;;
    file) compgen -G "$2" >/dev/null ;;
    python) PATH=/usr/bin:$PATH python3 -c "import $2" 2>/dev/null ;; # Debian's modules are for its own
  esac
}

# prepare_missing NEED...: the lines of the table that are needed and not there.
prepare_missing() {
  local need kind name package site
  while IFS='|' read -r need finder package site; do
    need=${need// /}
    read -r kind name <<<"$finder"
    [[ -n $need && " $* " == *" $need "* ]] || continue
    prepare_found "$kind" "$name" || echo "${package// /}|${site# }"
  done <<<"$prepare_table"
}

# How to become root without being asked anything: empty for root, `sudo -n`, or failure.
prepare_root() {
  if [[ $(id -u) == 0 ]]; then return 0; fi
  command -v sudo >/dev/null && sudo -n true 2>/dev/null && echo "sudo -n"
}

# prepare_install PACKAGE...: with apt. Its output is shown only when it fails.
prepare_install() {
  local root log
  command -v apt-get >/dev/null && root=$(prepare_root) || return 1
  log=$(mktemp)
  echo "installing with apt: $*" >&2
  # shellcheck disable=SC2206
  local install=($root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q
    --no-install-recommends -o Acquire::Retries=3 "$@")
  # A fresh image has no package lists, an old one has stale ones: fetch them when needed only.
  if ! "${install[@]}" </dev/null >"$log" 2>&1 &&
    ! { $root apt-get update -q </dev/null && "${install[@]}" </dev/null; } >"$log" 2>&1; then
    echo "error: apt could not install $*; its last words:" >&2
    tail -n 15 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# prepare NEED...: returns 3 when something that is not optional stays missing.
prepare() {
  local missing packages
  mapfile -t missing < <(prepare_missing "$@" optional)
  ((${#missing[@]})) || return 0
  packages=("${missing[@]%%|*}")
  prepare_install "${packages[@]}" || true
  mapfile -t missing < <(prepare_missing "$@")
  ((${#missing[@]})) || return 0
  echo "error: Sluice needs software that was not found here:" >&2
  local line
  for line in "${missing[@]}"; do
    echo "  ${line#*|} (Debian package ${line%%|*})" >&2
  done
  echo "hint: as root, 'apt-get install ${missing[*]%%|*}' provides it on Debian 12; on a cluster" \
    "load the modules of these names, or ask your support desk for them" >&2
  return 3
}
