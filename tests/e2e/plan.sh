#!/bin/bash
# What is known before a run, and why things are as they are: check, plan, why as a user sees them.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

cat >p.yaml <<'YAML'
sluice: 1
name: plate
params:
  tol: {type: string, default: "0.5"}
  cases: {type: list, default: [1, 2, 3]}
limits: {licence: 2}
tasks:
  make:
    foreach: {n: "${{ params.cases }}"}
    run: /bin/cp ${{ in.obs }} ${{ out.part }}
    inputs: {obs: {file: "obs.${{ item.n }}"}}
    outputs: {part: {file: part.txt}}
    resources: {cpus: 1, memory: 8MB, licence: 0.5}
    timeout: 1:30:00
    retry: {exit: {max: 1, codes: [75]}}
  double:
    foreach: {n: "${{ params.cases }}"}
    sh: |
      read -r value <"$IN_part"
      [[ $value != bad ]] || { echo "no number here" >&2; exit 3; }
      echo $((2 * value)) >"$OUT_twice"
    inputs: {part: make.part}
    outputs: {twice: {value: int}}
  total:
    sh: |
      awk -v tol="$PARAM_tol" '{s += $1} END {print s, tol}' "$IN_all" >"$OUT_sum"
    inputs: {all: double.twice}
    outputs: {sum: {file: sum.txt}}
YAML
for n in 1 2 3; do echo $n >obs.$n; done

# -- check ----------------------------------------------------------------------------------------
check "check: a good pipeline" "$sluice" check p.yaml
check_equal "check: says what it read" "$(cat output)" \
  "plate: 3 tasks, 7 instances, 7 objects, 3 source files, no mistakes found"
check "check: as JSON" eval '"$sluice" check p.yaml --json >check.json && python3 -c "
import json; c = json.load(open(\"check.json\"))
assert c[\"version\"] == 1 and c[\"ok\"] and c[\"findings\"] == [] and c[\"instances\"] == 7, c"'

# UC-097: absent, a dangling link, a directory: all at once, each with the chain step -> file.
rm obs.1 && ln -s nowhere obs.1
mv obs.3 kept && mkdir obs.3
check_status "check: missing sources are found before the first task" 2 "$sluice" check p.yaml --set 'cases=[1, 2, 3, 4]'
check_says "check: a dangling link, and where it leads" "task 'make\[n=1\]', input 'obs': '.*/obs.1' is a link to 'nowhere'"
check_says "check: a directory" "task 'make\[n=3\]', input 'obs': '.*/obs.3' is a directory"
check_says "check: an absent file" "task 'make\[n=4\]', input 'obs': '.*/obs.4' does not exist"
check_says "check: says how many" "^3 errors$"
check "check: findings as JSON, with their places" eval \
  '! "$sluice" check p.yaml --json >check.json 2>check.err && test ! -s check.err && python3 -c "
import json; c = json.load(open(\"check.json\"))
assert not c[\"ok\"] and c[\"errors\"] == 2, c
f = c[\"findings\"][0]
assert f[\"line\"] == 11 and f[\"column\"] > 1 and f[\"severity\"] == \"error\" and f[\"hint\"], f"'
rmdir obs.3 && mv kept obs.3 && rm obs.1 && echo 1 >obs.1

# UC-021: what is wrong in a command is found without running it.
check_status "check: a command that reads an input it has not" 2 \
  eval 'sed "s/in.obs }}/in.bam }}/" p.yaml >bad.yaml; "$sluice" check bad.yaml'
check_says "check: names it" "bad.yaml:10:.*bam"

# UC-096
cat >cycle.yaml <<'YAML'
sluice: 1
tasks:
  a: {run: "a ${{ in.x }}", inputs: {x: c.o}, outputs: {o: {file: o}}}
  b: {run: "b ${{ in.x }}", inputs: {x: a.o}, outputs: {o: {file: o}}}
  c: {run: "c ${{ in.x }}", inputs: {x: b.o}, outputs: {o: {file: o}}}
YAML
check_status "check: a cycle" 2 "$sluice" check cycle.yaml
check_says "check: the cycle in order" "in a cycle: a -> b -> c -> a"
check_says "check: what makes its edges" "'b' reads a.o as 'x', 'c' reads b.o as 'x', 'a' reads c.o as 'x'"

check "check: what this machine cannot hold is a warning" \
  eval 'sed "s/cpus: 1,/cpus: 4000,/" p.yaml >wide.yaml; "$sluice" check wide.yaml'
check_says "check: names task, demand and what is there" "wide.yaml:8:3: warning: task 'make' asks for 4000 cpus; this machine has [0-9]+"

# -- plan -----------------------------------------------------------------------------------------
check "plan: of a new run, for a machine of one's choice" "$sluice" plan p.yaml --workers 1 --cores 2
cp output planned
sed -E "s/about [^,]* on/about TIME on/; s#$scratch#HERE#" planned >found
cat >expected <<'TEXT'
plate: 3 tasks, 7 instances, 7 objects: 7 will run
make: 3 instances, 3 will run
    3 × it has never finished
    obs: HERE/obs.1, file
double: 3 instances, 3 will run
    3 × it has never finished
    part: make.part, one-to-one, 3 to 3
total: 1 instance, 1 will run
    1 × it has never finished
    all: double.twice, gather over [n], 3 into 1 (3 each)
estimate, of what will run: about TIME on 1 worker with 2 cores, at least 3.5 s (critical path 3.0 s, work over all cores 3.5 s)
    with 1 s each for make, double, total, of which no duration is known yet
TEXT
check "plan: edges, counts, reasons, a simulated duration beside its bound" diff expected found
check "plan: 6 instances in rounds of two and the last one alone take four seconds" \
  grep -qE "about 4\.[0-2] s on 1 worker" planned
check "plan: makes no run directory" test ! -e p.run

# UC-015
check "plan -v: details" "$sluice" plan p.yaml -v
check_says "plan -v: units as they were read" \
  "as read: timeout 1h30m; 1 cpu; memory 7.63 MiB; 0.5 of 2 licence; retry of exit: 1 more, only status 75"
check_says "plan -v: the shell and its options" "runs by: bash -euo pipefail"
check_says "plan -v: commands" "make\[n=2\]: will run: /bin/cp \\$\{\{ in.obs \}\} \\$\{\{ out.part \}\}"
check_says "plan -v: what is known later" "values known later: in.all after 'double'"
many="cases=[$(seq -s ', ' 1 9)]"
for n in 4 5 6 7 8 9; do echo $n >obs.$n; done
check "plan -v: the first few of many" "$sluice" plan p.yaml -v --set "$many"
check_says "plan -v: counts the rest" "… and 4 more \(-vv shows all\)"
check "plan -vv: all of them" eval '"$sluice" plan p.yaml -vv --set "$many" | grep -q "make\[n=9\]: will run: /bin/cp"'
check "plan: as JSON" eval '"$sluice" plan p.yaml --json >plan.json && python3 -c "
import json; p = json.load(open(\"plan.json\"))
assert p[\"version\"] == 1 and p[\"will_run\"] == 7 and p[\"up_to_date\"] == 0, p
assert p[\"tasks\"][2][\"inputs\"][0] == dict(name=\"all\", source=\"double.twice\", join=\"gather over [n]\", producers=3, consumers=1)
assert p[\"estimate\"][\"bound_ms\"] >= 3000 and p[\"estimate_all\"] is None, p"'

# -- a run that fails, and why --------------------------------------------------------------------
echo bad >obs.2
check_status "run: one of three fails" 1 "$sluice" run p.yaml
check "why: a failed instance, by the pipeline" "$sluice" why p.yaml 'double[n=2]'
check_says "why: verdict and reason" "^double\[n=2\]: will run: its last attempt failed$"
check_says "why: how the attempt ended" "attempt 1\.[0-9]+ ended by exit 3 on .* after .*, 20"
check_says "why: what it wrote last" "\| no number here"
check_says "why: where more is" "more: +sluice logs .*p.run 'double\[n=2\]'"
check_says "why: its files are kept" "files: .*/p.run/failed/1\.[0-9]+$"
cp output by_pipeline
check "why: the same by the run directory" eval '"$sluice" why p.run "double[n=2]" >by_directory && diff by_pipeline by_directory'
check "why: a skipped instance" "$sluice" why p.yaml total
check_says "why: whom it waits for" "waits for double\[n=2\] \(will run: its last attempt failed: exit 3\)"
check_says "why: because of whom it was skipped" "was skipped because double\[n=2\] failed"
check_says "why: and why that failed" "\| no number here"
check "why: as JSON" eval '"$sluice" why p.run total --json >why.json && python3 -c "
import json; w = json.load(open(\"why.json\"))
assert w[\"version\"] == 1 and w[\"instance\"][\"skipped_because\"] == \"double[n=2]\", w
f = w[\"because\"][\"failures\"][-1]
assert f[\"cause\"] == \"exit\" and f[\"exit_code\"] == 3 and f[\"stderr\"] == \"no number here\\n\" and f[\"final\"], f"'
check_status "why: an instance that is not there" 2 "$sluice" why p.yaml 'double[n=7]'
check_says "why: names one that is" "task 'double' has no instance 'double\[n=7\]'; its first is 'double\[n=1\]'"
check_status "why: a task that is not there" 2 "$sluice" why p.yaml 'dubble'
check_says "why: names the nearest" "did you mean 'double'"

echo 2 >obs.2
check "why: a source that changed, and which" "$sluice" why p.yaml 'make[n=2]'
check_says "why: names the file" "changed: the content of input 'obs', '.*/obs.2'"
check "run: continues" "$sluice" run p.yaml
check "why: what is done" "$sluice" why p.run 'make[n=2]'
check_says "why: when, where, how long, in which submission" "done by attempt 2\.[0-9]+ on .* in .*, 20.*, submission 2$"
check "plan: nothing to do" "$sluice" plan p.yaml
check_equal "plan: says so and estimates nothing" "$(head -n 1 output) $(grep -c estimate output)" \
  "plate: 3 tasks, 7 instances, 7 objects: 7 up to date 0"

# -- what re-runs, and which part of the key did it -----------------------------------------------
# UC-042: times change, contents do not.
touch obs.1 obs.2 obs.3
check "plan: touched sources" "$sluice" plan p.yaml
check_says "plan: touched sources change nothing" "7 up to date$"
# UC-085
check "plan: a comment and other resources" \
  eval 'sed "s/^  total:/  total:   # the end\n    resources: {memory: 1MiB}/" p.yaml >other.yaml
        "$sluice" plan other.yaml --run-dir p.run'
check_says "plan: a comment and other resources change nothing" "7 up to date$"
# UC-086
check "why: another param" "$sluice" why p.yaml total --set tol=0.25
check_says "why: which param" "changed: param 'tol'"
check_says "why: what it was" "was: 0.5$"
check_says "why: what it is" "is:  0.25$"
sed -i 's/2 \* value/3 * value/' p.yaml
check "why: another script" "$sluice" why p.yaml 'double[n=1]'
check_says "why: which line" "changed: its command, line 3"
check_says "why: the old line" 'was: echo \$\(\(2 \* value\)\) >"\$OUT_twice"'
check_says "why: the new line" 'is:  echo \$\(\(3 \* value\)\) >"\$OUT_twice"'
# UC-044: what is made again only because its bytes are gone.
check "plan: another script" "$sluice" plan p.yaml
check_says "plan: intermediates that are gone are made again" "3 × its output 'part' is gone and 'double' needs it"
check_says "plan: what follows may stay" "1 × it waits for 'double'; it runs if 'twice' has other content then"
check_says "plan: estimates both" "estimate, if all that may run does: about"
check_says "plan: with what was learned" "with the median durations of earlier successes"
check "why: a whole task, in groups" "$sluice" why p.yaml make
check_says "why: with one of them named" "^make: 3 will run: its output 'part' is gone and 'double' needs it \(such as 'make\[n=1\]'\)"

mv p.yaml moved.yaml
check_status "why: the run's pipeline is gone" 2 "$sluice" why p.run total
check_says "why: says which it was" "the pipeline of this run was .*/p.yaml, which is not there any more"

# -- a run contains all of 'will run' and none of 'up to date' ------------------------------------
# Random layers; each round changes a param of one task, and removes a result now and then.
seed=${SLUICE_SEED:-$RANDOM}
echo "      seed $seed"
RANDOM=$seed
{
  printf 'sluice: 1\nparams:\n'
  for t in 0 1 2 3 4; do printf '  p%d: {type: int, default: 0}\n' $t; done
  printf 'tasks:\n'
  for t in 0 1 2 3 4; do
    printf '  t%d:\n    foreach: {n: [1, 2]}\n' $t
    # Half of the tasks give the same bytes whatever their param is: their readers may stay.
    shown=$((RANDOM % 2))
    printf '    sh: |\n      echo "t%d[n=$ITEM_n]" >>%s/ran; echo "$PARAM_p%d $ITEM_n" | cut -c %d- >"$OUT_o"\n' \
      $t "$scratch" $t $((shown == 1 ? 1 : 2))
    ((t == 0)) || {
      read -r a b <<<"$((RANDOM % t)) $((RANDOM % t))"
      printf '      cat "$IN_a" "$IN_b" >>"$OUT_o"\n    inputs: {a: t%d.o, b: t%d.o}\n' $a $b
    }
    printf '    outputs: {o: {file: o, keep: %s}}\n' true
  done
} >random.yaml
run_is_as_planned() { # SETTINGS...
  rm -f ran && touch ran
  "$sluice" plan random.yaml -vv "$@" >planned || return 1
  "$sluice" run random.yaml "$@" 2>random.err || return 1
  sort -u ran >did
  sed -nE 's/^      (t.*\]): will run.*/\1/p' planned | sort >will
  sed -nE 's/^      (t.*\]): up to date.*/\1/p' planned | sort >current
  [[ -z $(comm -23 will did) && -z $(comm -12 current did) ]] || { cat planned did; return 1; }
}
declare -A value
check "random: the first run is as planned" run_is_as_planned
for round in 1 2 3 4; do
  value[p$((RANDOM % 5))]=$round
  settings=()
  for name in "${!value[@]}"; do settings+=(--set "$name=${value[$name]}"); done
  ((round % 2)) || find random.run/results -type f ! -name items.tsv | sort | sed -n "$((1 + RANDOM % 10))p" | xargs rm
  check "random: round $round is as planned" run_is_as_planned "${settings[@]}"
done
