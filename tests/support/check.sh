# shellcheck shell=bash
# Sourced first by every script check (tests/e2e, tests/cluster, tests/tidy):
#
#   . "$(dirname "$0")/../support/check.sh"
#   check "the run ends with status 0" "$sluice" run "$scratch/p.yaml"
#
# Gives: $repository, $build (the build folder in use), $sluice (the binary in it), $scratch (a
# folder of this script, removed at its end; $TMPDIR is below it), and the functions below. When
# the script ends it also checks that it ran to its end and left nothing behind: no process, no
# object store, no shared memory of Open MPI. Each result is a line `pass|fail|skip TAB sentence` in
# the file $CHECK_RESULTS, which tests/run.sh counts. The script's exit status is 1 after a failure.

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${SLUICE_BUILD:-$repository/build/release}
# shellcheck disable=SC2034
sluice=$build/sluice
scratch=$(mktemp -d "${TMPDIR:-/tmp}/sluice-check.XXXXXX")
CHECK_RESULTS=${CHECK_RESULTS:-$scratch/results}
check_failures=0

# Children inherit this, whatever they do to their process group or parent: so leaks are found.
export CHECK_SCRIPT_ID=$$.${scratch##*.}
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"

# Open MPI as root and with more ranks than cores, as in a container.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

# The system's: what Debian's packages bring is for that one.
python3() { PATH=/usr/bin:$PATH command python3 "$@"; }

check_result() {
  printf '%s\t%s\n' "$1" "$2" >>"$CHECK_RESULTS"
  case $1 in
    pass) echo "ok    $2" ;;
    fail) echo "FAIL  $2" && check_failures=$((check_failures + 1)) ;;
    skip) echo "skip  $2: $3" ;;
  esac
}

# check SENTENCE COMMAND...: the sentence is true when the command succeeds. Its output is kept in
# $scratch/output and shown when it fails; then check returns 1, for `|| exit 1`. `!` as first word of the command negates.
check() {
  local sentence=$1
  shift
  if [[ $1 == '!' ]]; then
    shift
    check_status "$sentence" '[1-9]*' "$@"
  else
    check_status "$sentence" 0 "$@"
  fi
}

# check_status SENTENCE STATUS COMMAND...: as check, for one exit status (a pattern of bash).
check_status() {
  local sentence=$1 expected=$2 status=0
  shift 2
  "$@" >"$scratch/output" 2>&1 || status=$?
  # shellcheck disable=SC2053
  if [[ $status == $expected ]]; then
    check_result pass "$sentence"
    return 0
  fi
  check_result fail "$sentence"
  echo "      status $status, expected $expected: $(cut -c 1-200 <<<"$*")"
  tail -n 40 "$scratch/output" | sed 's/^/      | /'
  return 1
}

# check_equal SENTENCE FOUND EXPECTED
check_equal() {
  if [[ $2 == "$3" ]]; then
    check_result pass "$1"
  else
    check_result fail "$1"
    printf '      found:    %s\n      expected: %s\n' "$2" "$3"
    return 1
  fi
}

# check_says SENTENCE REGEX: a line of what the last checked command printed matches.
check_says() {
  if grep -qE -- "$2" "$scratch/output"; then
    check_result pass "$1"
  else
    check_result fail "$1"
    echo "      no line matches: $2"
    tail -n 40 "$scratch/output" | sed 's/^/      | /'
    return 1
  fi
}

# skip SENTENCE WHY: for what cannot be checked on this machine.
skip() { check_result skip "$1" "$2"; }

# wait_until SECONDS COMMAND...: looks every 50 ms; fails when the time is over.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

# ---------------------------------------------------------------- what must not stay behind

# Processes that were started by this script, directly or not, and are alive.
check_own_processes() {
  env -u CHECK_SCRIPT_ID bash -c 'grep -lsz "^CHECK_SCRIPT_ID=$0\$" /proc/[0-9]*/environ | cut -d/ -f3' \
    "$CHECK_SCRIPT_ID"
}
check_no_own_processes() { [[ -z $(check_own_processes) ]]; }

check_shared_memory() {
  find /dev/shm -maxdepth 1 \( -name 'sluice.*' -o -name 'vader_segment*' \) -printf '%f\n' | sort
}
check_shared_memory_before=$(check_shared_memory)

# A store folder is sluice.<uid>.<owner pid>.<owner start time>.<pid space>.<rank>: is its owner alive?
check_store_is_owned() {
  local owner start stat fields
  IFS=. read -r _ _ owner start _ <<<"$1"
  stat=$(cat "/proc/$owner/stat" 2>/dev/null) || return 1
  read -ra fields <<<"${stat##*) }"
  [[ ${fields[19]} == "$start" ]]
}

# What appeared since the script began and belongs to nobody who is alive. (Other runs on this
# machine may come and go: theirs is not ours to judge.)
check_left_memory() {
  local name
  comm -13 <(echo "$check_shared_memory_before") <(check_shared_memory) | while read -r name; do
    case $name in
      sluice.*) check_store_is_owned "$name" || echo "/dev/shm/$name" ;;
      *) grep -qsF "/dev/shm/$name" /proc/[0-9]*/maps || echo "/dev/shm/$name" ;;
    esac
  done
  find "$TMPDIR" -maxdepth 1 -name 'sluice.*'
}
check_no_left_memory() { [[ -z $(check_left_memory) ]]; }

check_end() {
  local status=$? pid
  trap - EXIT
  cd /
  if [[ $status != 0 && $check_failures == 0 ]]; then
    check_result fail "the script ran to its end (it left with $status)"
  fi
  if wait_until 5 check_no_own_processes; then
    check_result pass "no process stayed behind"
  else
    check_result fail "no process stayed behind"
    for pid in $(check_own_processes); do
      echo "      $pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"
      kill -9 "$pid" 2>/dev/null
    done
  fi
  if wait_until 2 check_no_left_memory; then
    check_result pass "no store and no shared memory stayed behind"
  else
    check_result fail "no store and no shared memory stayed behind"
    check_left_memory | sed 's/^/      /'
  fi
  rm -rf "$scratch"
  [[ $check_failures == 0 ]] || exit 1
  exit 0
}
trap check_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
