#!/bin/bash
# A list of commands: what runs, what runs again, where it runs, and what is said about mistakes.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

cp -r "${repository:?}/configs/commands" example
rm -rf example/*.run
check "example: the list has no mistakes" "$sluice" check --commands example/list.txt
check_says "example: it has five commands" 'list: .*5 instances'
check "example: the list runs" "$sluice" run --commands example/list.txt || exit 1
check_equal "example: what the commands wrote is in the list's folder" \
  "$(cd example && cat squares.txt cubes.txt && ls pi.*.txt | xargs)" \
  $'385\n2 8\n3 27\n5 125\n7 343\npi.1.txt pi.2.txt pi.3.txt'
check "example: logs tell what they printed" "$sluice" logs example/list.txt
check_says "example: logs have the lines" '^seed 2: 3\.[01]'
check "example: status knows the list" "$sluice" status example/list.txt
check_says "example: all are done" 'all tasks: +5 instances: 5 done'

# Each command leaves a mark, so that re-runs can be counted from outside.
mkdir work
list=work/marks.list
printf '%s\n' '# marks' './mark a' '' './mark b' './mark a' 'echo c >>ran; cd /' >$list
printf '#!/bin/bash\necho "$1" >>ran\n' >work/mark
chmod +x work/mark
ran() { sort work/ran 2>/dev/null | tr '\n' ' '; rm -f work/ran; }

check "list: runs" "$sluice" run --commands $list --timeout 5m --memory 10MiB || exit 1
check_equal "list: each line ran once, in the list's folder" "$(ran)" "a a b c "
check "list: again" "$sluice" run --commands $list
check_says "list: nothing is to do" 'nothing to do: all 4 instances are done'
printf '%s\n' 'echo c >>ran; cd /' './mark a' './mark a' '# moved' './mark b' >$list
check "list: reordered" "$sluice" run --commands $list
check_equal "list: reordering runs none again" "$(ran)" ""
sed -i 's/mark b/mark d/' $list
check "list: plan sees the edited line" "$sluice" plan --commands $list
check_says "list: plan counts one" '1 will run'
check "list: an edited line" "$sluice" run --commands $list
check_equal "list: only that line ran" "$(ran)" "d "
printf '%s\r\n' './mark a' './mark e' >$list
check "list: with carriage returns" "$sluice" run --commands $list
check_says "list: they are warned of once" 'marks.list:1:1: warning: 2 lines end with a carriage return'
check_equal "list: they are no part of the command" "$(ran)" "e "

printf '%s\n' true 'echo to-stderr >&2; exit 7' 'no-such-program x' 'false | cat' >$list
check_status "failures: the run ends with 1" 1 "$sluice" run --commands $list
check_says "failures: the status of a command" 'command: exit 7'
check_says "failures: what it said" '\| to-stderr'
check_says "failures: a program that is not there" 'no-such-program'
check "failures: why names the line" "$sluice" why --commands $list 'command[line=false | cat]'
check_says "failures: pipefail holds" 'exit 1'
check "failures: logs of those that failed" "$sluice" logs $list --failed --stderr
check_says "failures: with what they said" '^to-stderr'

printf '%s\n' true 'one \' two >$list
check_status "mistakes: a continued line is refused" 2 "$sluice" run --commands $list
check_says "mistakes: its line is named" "marks.list:2:5: error: the line ends with '.'"
check_status "mistakes: there is no list" 2 "$sluice" run --commands nowhere.list
check_says "mistakes: that is said" 'nowhere.list: error: there is no such file'

# UC-020: a loop that feeds the engine its stdin keeps its lines; commands read nothing.
printf 'cat\n' >$list
check_equal "stdin: neither sluice nor its commands read it" \
  "$(printf '1\n2\n3\n' | while read -r line; do
    "$sluice" run --commands $list >/dev/null 2>&1 && echo "$line"
  done | xargs)" "1 2 3"

# UC-110: longer than any word that the system passes on.
{ printf 'echo ' && head -c 300000 /dev/zero | tr '\0' x && echo ' | wc -c >size'; } >$list
check "long line: runs" "$sluice" run --commands $list
check_equal "long line: all of it arrived" "$(cat work/size)" 300001
