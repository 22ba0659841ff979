#!/bin/bash
# What other tools were blamed for, in one run: failures that a pipe hid, scripts that went on,
# texts that a shell took apart, scripts larger than a command line.
. "$(dirname "$0")/../support/check.sh"
cd "$scratch" || exit

logs_of() { "$sluice" logs p.run "$1" 2>&1; }
result() { cat "p.run/results/$1"; }

{
  cat <<'YAML'
sluice: 1
params: {odd: {type: string, default: "a  b;touch pwned $(touch pwned) 'x' \"y\" * -n"}}
tasks:
  hidden:  # UC-015
    sh: false | tee "$OUT_x"
    outputs: {x: {file: x}}
  goes_on:  # UC-016
    sh: |
      echo before >"$OUT_x"
      nosuchcommand_of_anybody
      echo after >"$OUT_x"
    outputs: {x: {file: x}}
  unset:
    sh: echo "$NOT_SET_BY_ANYBODY" >"$OUT_x"
    outputs: {x: {file: x}}
  words:  # UC-014
    run: bash -c 'printf "%s|" "$#" "$1" "$2" >x' bash ${{ params.odd }} ${{ item.name }}
    foreach: {name: ["it's", "q;touch pwned", "-n", "x(1) & y"]}
    outputs: {x: {file: x}}
  braces:  # UC-012
    sh: |
      printf '1 2\n' | awk '{print $2}' >"$OUT_x"
      echo "${HOME:+home}" '{"k": 1}' {a,b} >>"$OUT_x"
    outputs: {x: {file: x}}
  large:  # UC-018, UC-110: a script is a file, not an argument
    outputs: {x: {file: x}}
    sh: |
YAML
  for ((i = 0; i < 40000; i++)); do echo "      : line $i of a script that no argument could hold"; done
  echo '      echo done >"$OUT_x"'
} >p.yaml
check "user cases: the script is larger than an argument may be" test "$(wc -c <p.yaml)" -gt 2000000

check_status "user cases: three tasks fail, the others do not" 1 "$sluice" run p.yaml
check "a failure hidden by a pipe fails the task" eval '"$sluice" status p.run | grep -q "3 failed"'
check "a script stops at the line that fails" eval 'logs_of goes_on | grep -q nosuchcommand_of_anybody'
check "it made nothing that counts" test ! -e p.run/results/goes_on
check "a variable that is not set stops the script" eval 'logs_of unset | grep -q "unbound variable"'
check_equal "a text is one word, whatever is in it" "$(result 'words/name=q%3Btouch%20pwned.x')" \
  "2|a  b;touch pwned \$(touch pwned) 'x' \"y\" * -n|q;touch pwned|"
check_equal "a word may begin with a dash" "$(result words/name=-n.x | cut -d'|' -f3)" -n
check "and nothing of it is executed" eval '! find . -name pwned | grep -q .'
check_equal "braces and dollars of a script reach bash" "$(result braces/x)" $'2\nhome {"k": 1} a b'
check_equal "a script of two megabytes runs" "$(result large/x)" "done"
