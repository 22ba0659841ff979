#!/bin/bash
# Directory outputs: between tasks, gathered, as results, over a resume, and over several ranks.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
listing() { (cd "$1" && find . -printf '%P %y %l %s\n' | grep -v ' d ' | sort; find . -type d | sort); }

cat >p.yaml <<YAML
sluice: 1
name: directories
tasks:
  split:
    foreach: {n: {range: [0, 4]}}
    sh: |
      echo "split \$ITEM_n" >>$scratch/ran
      mkdir -p "\$OUT_parts/deep/er" "\$OUT_parts/empty"
      for i in 1 2 3; do echo "\$ITEM_n.\$i" >"\$OUT_parts/part \$i"; done
      : >"\$OUT_parts/nothing"
      head -c 3000000 /dev/zero >"\$OUT_parts/deep/er/zeros"
      printf '#!/bin/sh\necho tool %s\n' "\$ITEM_n" >"\$OUT_parts/tool"
      chmod +x "\$OUT_parts/tool"
      ln -s "../part 1" "\$OUT_parts/deep/first"
      ln -s deep "\$OUT_parts/shortcut"
    outputs: {parts: {dir: parts}}
  use:
    foreach: {n: {range: [0, 4]}}
    inputs: {parts: split.parts}
    sh: |
      echo "use \$ITEM_n" >>$scratch/ran
      find "\$IN_parts" -type f | wc -l >"\$OUT_seen"
      cat in/parts/parts/part* "\$IN_parts/shortcut/first" >>"\$OUT_seen"
      "\$IN_parts/tool" >>"\$OUT_seen"
      [[ ! -w \$IN_parts || \$EUID == 0 ]]
      stat -c %a "\$IN_parts" "\$IN_parts/nothing" "\$IN_parts/tool" >>"\$OUT_seen"
    outputs: {seen: {file: seen}}
  copy:
    foreach: {n: {range: [0, 4]}}
    run: cp -r \${{ in.parts }} \${{ out.copy }}
    inputs: {parts: split.parts}
    outputs: {copy: {dir: copy}}
  all:
    inputs: {seen: use.seen, parts: split.parts}
    sh: |
      mkdir "\$OUT_all"
      while read -r path; do cat "\$path"; done <"\$IN_seen" >"\$OUT_all/seen"
      while read -r path; do ls "\$path"; done <"\$IN_parts" >"\$OUT_all/names"
      cut -f 1 "\$IN_parts_ITEMS" >"\$OUT_all/items"
    outputs: {all: {dir: all, keep: true}}
YAML

check "one process: directories go from task to task" "$sluice" run p.yaml --run-dir one.run
check_equal "one process: the gather has seen each of them" "$(cat one.run/results/all/all/items)" \
  "$(printf '%s\n' n 0 1 2 3)"
check_equal "one process: files, links and modes are right" "$(head -n 9 one.run/results/all/all/seen)" \
  "$(printf '%s\n' 6 0.1 0.2 0.3 0.1 'tool 0' 555 444 555)"
check_equal "one process: a result is the whole tree" "$(listing one.run/results/copy/n=2.copy)" \
  "$(mkdir -p t/deep/er t/empty && cd t && for i in 1 2 3; do echo "2.$i" >"part $i"; done && : >nothing &&
    head -c 3000000 /dev/zero >deep/er/zeros && printf '#!/bin/sh\necho tool 2\n' >tool && chmod +x tool &&
    ln -s "../part 1" deep/first && ln -s deep shortcut && listing .)"
check_equal "one process: files of a result are read-only, its folders can be removed" \
  "$(stat -c %a one.run/results/copy/n=2.copy/nothing one.run/results/copy/n=2.copy/tool one.run/results/copy/n=2.copy | xargs)" "444 555 755"

# -- again ----------------------------------------------------------------------------------------
rm ran
check "again: nothing runs" "$sluice" run p.yaml --run-dir one.run
check_says "again: and that is said" "nothing to do"
check "again: nothing ran" test ! -e ran
rm -r one.run/results/all/all
check "a result that is gone is made again" "$sluice" run p.yaml --run-dir one.run
check "a result that is gone: there it is" test -s one.run/results/all/all/seen
rm -f ran
echo more >>"one.run/results/copy/n=1.copy/deep/er/zeros"
check "a result that was changed inside is made again" "$sluice" run p.yaml --run-dir one.run
check_says "a result that was changed inside: people are told" "n=1.copy' has .* bytes, .* were recorded"
check_equal "a result that was changed inside: it is as before" \
  "$(stat -c %s one.run/results/copy/n=1.copy/deep/er/zeros)" 3000000
check_equal "a result that was changed inside: only its input ran again" "$(cat ran)" "split 1"

# -- several ranks --------------------------------------------------------------------------------
ranks() { timeout 120 mpirun -n "$1" --bind-to none "$sluice" "${@:2}"; }
check "three ranks: the run succeeds" ranks 3 run p.yaml --run-dir three.run
check "three ranks: the same results" diff -r --no-dereference one.run/results three.run/results
check "three ranks: nothing to do the second time" ranks 3 run p.yaml --run-dir three.run
check_says "three ranks: says so" "nothing to do"

# -- what cannot be kept --------------------------------------------------------------------------
bad() {  # bad SENTENCE REGEX SCRIPT KIND
  printf 'sluice: 1\ntasks:\n  a:\n    sh: |\n      %s\n    outputs: {parts: {%s: parts}}\n' "$3" "$4" >bad.yaml
  rm -rf bad.run
  check_status "$1: the attempt fails" 1 "$sluice" run bad.yaml
  check_says "$1: the message says why" "$2"
}
# UC-041
bad "a link that leads out" "'parts/l' is a link to '/etc'" 'mkdir parts; ln -s /etc parts/l' dir
check "a link that leads out: the directory is kept for a look" test -L bad.run/failed/*/parts/l
bad "a pipe" "'parts/p' is a named pipe" 'mkdir parts; mkfifo parts/p' dir
bad "a file instead" "declare the output as {file: parts}" 'echo >parts' dir
bad "a directory instead" "declare the output as {dir: parts}" 'mkdir parts' file
bad "nothing" "no directory 'parts'" 'mkdir part' dir

# ---------------------------------------------------------------- many files (UC-019)

many=$([[ ${SLUICE_LONG:-} == 1 ]] && echo 150000 || echo 20000)
cat >many.yaml <<YAML
sluice: 1
tasks:
  make:
    sh: mkdir -p "\$OUT_d"/{0..99} && seq $many | awk -v d="\$OUT_d" '{f = d "/" (\$1 % 100) "/a file of the output number " \$1; print \$1 >f; close(f)}'
    outputs: {d: {dir: d}}
  count:
    sh: find "\$IN_d/" -type f | wc -l >"\$OUT_n"
    inputs: {d: make.d}
    outputs: {n: {value: int}}
  keep:
    sh: cp -r "\$IN_d" "\$OUT_e"
    inputs: {d: make.d}
    outputs: {e: {dir: e}}
YAML
check "many files: a directory of $many files is an output, an input and a result" "$sluice" run many.yaml
check_equal "many files: all of them are there" "$(cat many.run/results/count/n) $(find many.run/results/keep/e -type f | wc -l)" "$many $many"

# ---------------------------------------------------------------- as an ordinary user

# Root may change what is read-only, so only somebody else sees whether a copy of an input, which is
# read-only, can become an output.
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
  mkdir -p user && cp "$sluice" "$build/sluice-h5" user && cd user || exit
  cat >copy.yaml <<'YAML'
sluice: 1
tasks:
  make:
    sh: mkdir -p "$OUT_d/sub" && echo 1 >"$OUT_d/sub/x" && echo 2 >"$OUT_d/y"
    outputs: {d: {dir: d}}
  copy:
    sh: cp -r "$IN_d" "$OUT_e"; test ! -w "$OUT_e"
    inputs: {d: make.d}
    outputs: {e: {dir: e}}
YAML
  chmod 711 "$scratch" && chown -R 65534:65534 .
  check "somebody else: a copy of a read-only directory is an output" \
    setpriv --reuid=65534 --regid=65534 --clear-groups env TMPDIR="$PWD" HOME="$PWD" ./sluice run copy.yaml
  # What a task was given from the run directory it may read only.
  cat >write.yaml <<'YAML'
sluice: 1
params: {go: {type: bool, default: false}}
tasks:
  a: {sh: 'echo good >"$OUT_o"', outputs: {o: {file: o, keep: true}}}
  b:
    sh: 'if $PARAM_go; then printf BAD | dd of="$IN_o" conv=notrunc; fi; cat "$IN_o" >"$OUT_p"'
    inputs: {o: a.o}
    outputs: {p: {file: p}}
YAML
  as_somebody_else() { setpriv --reuid=65534 --regid=65534 --clear-groups env TMPDIR="$PWD" HOME="$PWD" ./sluice "$@"; }
  check "somebody else: a run" as_somebody_else run write.yaml
  check_status "somebody else: a task that writes its input, which is a result, fails" 1 as_somebody_else run write.yaml --set go=true
  check_equal "somebody else: the result is as it was" "$(cat write.run/results/a/o)" good
  check_status "somebody else: a shell cannot change a result by the way" 1 as_somebody_else shell write.run b -c 'echo BAD >"$IN_o"'
  check_equal "somebody else: it is still as it was" "$(cat write.run/results/a/o)" good
  check_equal "somebody else: with all of it" "$(cat copy.run/results/copy/e/sub/x copy.run/results/copy/e/y | xargs)" "1 2"
  cd ..
else
  skip "somebody else: a copy of a read-only directory is an output" "needs root and setpriv"
fi
