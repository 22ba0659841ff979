#!/bin/bash
# The command line itself: help, mistakes in typing, versions, completion, the manual, and what
# happens when its output cannot be written. What completion gives is asked of the shells themselves.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

# ---------------------------------------------------------------- help

check "help: is there" "$sluice" --help
check_says "help: leads with examples" '^  sluice run pipeline.yaml  '
cp output help
verbs=$(awk '/^[A-Z].*:$/ {ours = !/^(Examples|Options):/; next} ours && /^  / {print $1}' help)
for verb in $verbs; do
  check "help: sluice help $verb is sluice $verb --help" \
    cmp <("$sluice" help "$verb") <("$sluice" "$verb" --help)
done
check_status "mistakes: no verb is status 2" 2 "$sluice"
check_status "mistakes: a verb that is mistyped" 2 "$sluice" sttaus p.run
check_says "mistakes: did you mean" "'sttaus' is no verb of sluice; did you mean 'status'\?"
check_status "mistakes: an option that is mistyped" 2 "$sluice" run p.yaml --rundir r
check_says "mistakes: did you mean, of an option" \
  "'sluice run' has no option '--rundir'; did you mean '--run-dir'\?"
check_status "mistakes: an option of sluice that is mistyped" 2 "$sluice" --versoin
check_says "mistakes: did you mean, of sluice's own" "did you mean '--version'\?"
check_status "mistakes: one word too many" 2 "$sluice" run p.yaml q.yaml
check_says "mistakes: it is named" "'sluice run' does not expect 'q.yaml'"
check_status "mistakes: run needs something to run" 2 "$sluice" run
check_says "mistakes: run says what it needs" "needs a pipeline: sluice run pipeline.yaml, or --commands"
check_status "mistakes: --set without =" 2 "$sluice" run p.yaml --set x
check_says "mistakes: --set says how" "write --set name=value"
check_status "mistakes: a size without unit" 2 "$sluice" run --commands l.txt --memory 12
check_says "mistakes: the size is explained" "--memory: '12' has no unit"
check_status "mistakes: help of no verb" 2 "$sluice" help statos
check_says "mistakes: help of no verb, did you mean" "did you mean 'status'\?"

check "version: is there" "$sluice" --version
for what in '^sluice [0-9.]+$' 'MPI: +[A-Z]' 'hwloc: +[0-9]' 'HDF5: +[0-9]' 'compiler: +(g\+\+|clang) [0-9]'; do
  check_says "version: $what" "$what"
done

# ---------------------------------------------------------------- completion and manual

mkdir study
touch study/one.yaml list.txt
# complete WORD...: what bash offers for the last word.
complete_words() {
  bash -c 'source <("$1" completion bash) || exit
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _sluice
    printf "%s\n" "${COMPREPLY[@]}" | sort | tr "\n" " "' bash "$sluice" "$@"
}
check_equal "completion: verbs by their beginning" "$(complete_words sluice st)" "status stop "
check_equal "completion: of no verb it is all of help's" "$(complete_words sluice '' | tr ' ' '\n' | grep -v '^-' | xargs)" \
  "$(xargs -n1 <<<"$verbs" | sort | xargs)"
check_equal "completion: options of the verb" "$(complete_words sluice status p.run --ex)" "--exit-code "
check_equal "completion: files where a pipeline belongs" "$(complete_words sluice run stu)" "study "
check_equal "completion: files behind an option that takes one" "$(complete_words sluice run --commands li)" "list.txt "
check_equal "completion: also in the form --option=" "$(complete_words sluice run --commands = li)" "list.txt "
check_equal "completion: nothing behind a number" "$(complete_words sluice run --cpus '')" " "
check_equal "completion: the shells there are" "$(complete_words sluice completion '')" "bash fish zsh "
check_equal "completion: verbs behind help" "$(complete_words sluice help repl)" "replay "
check "completion: the script for bash is sound" bash -n <("$sluice" completion bash)
for shell in zsh fish; do
  "$sluice" completion "$shell" >script."$shell"
  check "completion: the script for $shell names every verb" \
    bash -c 'for verb; do grep -q -- "$verb" script.'$shell' || exit 1; done' bash $verbs
  if command -v "$shell" >/dev/null; then
    check "completion: the script for $shell is sound" "$shell" -n script."$shell"
  else
    skip "completion: the script for $shell is sound" "no $shell here"
  fi
done

"$sluice" man >sluice.1
check "manual: names every verb" \
  bash -c 'for verb; do grep -q "^\.SS sluice $verb$" sluice.1 || exit 1; done' bash $verbs
if command -v groff >/dev/null; then
  check_equal "manual: troff finds no mistake" "$(groff -man -ww -Tutf8 -z sluice.1 2>&1)" ""
else
  skip "manual: troff finds no mistake" "no groff here"
fi

# ---------------------------------------------------------------- output that cannot be written

check_status "full disk: a query says so" 3 bash -c '"$1" --help >/dev/full' bash "$sluice"
check_says "full disk: it is named" "error: stdout cannot be written"
check_equal "closed pipe: a query ends without a word" "$( ("$sluice" --help | true) 2>&1)" ""
check_equal "closed pipe: also where SIGPIPE is ignored" \
  "$(trap '' PIPE; ("$sluice" --help | true) 2>&1)" ""

# ---------------------------------------------------------------- where am I

# UC-108
mkdir -p project elsewhere
cat >project/where.yaml <<'YAML'
sluice: 1
tasks:
  tell:
    run: ./tell.sh ${{ in.data }} ${{ out.copy }}
    inputs: {data: {file: data.txt}}
    outputs: {copy: {file: copy.txt}}
YAML
printf '#!/bin/bash\ncp "$1" "$2"\n' >project/tell.sh
chmod +x project/tell.sh
echo here >project/data.txt
check "where: a pipeline runs from another folder" bash -c 'cd elsewhere && "$1" run ../project/where.yaml' bash "$sluice"
check_equal "where: its results are beside it" "$(cat project/where.run/results/tell/copy.txt)" here
check "where: and from its own folder it is the same run" bash -c 'cd project && "$1" run where.yaml' bash "$sluice"
check_says "where: nothing is to do" "nothing to do"
check_equal "where: nothing was left elsewhere" "$(ls elsewhere)" ""

# UC-032
name=$'m\xe4rz \xc3\xa4'
mkdir "$name"
cp project/where.yaml project/tell.sh project/data.txt "$name"
cat >"$name/list.txt" <<'LIST'
printf 'M\xe4rz \x90\x00\n'
head -c 100000 /dev/urandom
LIST
printf 'printf %%s "gr\xfc\xdfe"\n' >>"$name/list.txt"
export LC_ALL=C LANG=C
check "locale: a path that is no UTF-8 works in the locale C" "$sluice" run "$name/where.yaml"
check_equal "locale: its result is there" "$(cat "$name/where.run/results/tell/copy.txt")" here
check "locale: binary output harms nobody" "$sluice" run --commands "$name/list.txt"
check "locale: a line that is no UTF-8 is known again" "$sluice" run --commands "$name/list.txt"
check_says "locale: nothing is to do" "nothing to do: all 3 instances"
check "locale: status is JSON all the same" bash -c '"$1" status "$2" --json | python3 -m json.tool' bash "$sluice" "$name/list.run"
check "locale: logs give the bytes" bash -c '"$1" logs "$2" | grep -qaP "M\xe4rz \x90\x00"' bash "$sluice" "$name/list.run"
