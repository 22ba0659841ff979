#!/bin/bash
# How an attempt runs: what it reads and writes, where it starts, what its shell does, how values and names arrive.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

# -- stdin and stdout -----------------------------------------------------------------------------
# UC-020: what a task does not name as its input, it cannot read
printf '10\n9\n1\n' >numbers.txt
cat >redirect.yaml <<'YAML'
sluice: 1
name: redirect
tasks:
  sort:
    run: sort -n
    stdin: numbers
    stdout: sorted
    inputs: {numbers: {file: numbers.txt}}
    outputs: {sorted: {file: sorted.txt}}
  largest:
    sh: |
      echo "to the log" >&2
      tail -n 1
    stdin: sorted
    stdout: last
    inputs: {sorted: sort.sorted}
    outputs: {last: {value: int}}
  of_value:
    run: cat
    stdin: last
    stdout: copy
    inputs: {last: largest.last}
    outputs: {copy: {file: copy.txt}}
  parts:
    foreach: {n: [2, 1]}
    run: echo ${{ item.n }}
    stdout: n
    outputs: {n: {value: int}}
  of_list:
    run: cat
    stdin: all
    stdout: copy
    inputs: {all: parts.n}
    outputs: {copy: {file: copy.txt}}
  nothing:
    run: cat
    stdout: empty
    outputs: {empty: {file: empty.txt}}
YAML
check "redirect: runs" eval 'printf "1\n2\n3\n" | { "$sluice" run redirect.yaml; cat >rest; }' || exit 1
results=redirect.run/results
check_equal "stdin: the engine leaves its own alone" "$(tr '\n' ' ' <rest)" "1 2 3 "
check_equal "stdin, stdout: a file of the folder is sorted into an output, its last line is a value" \
  "$(head -n 1 $results/of_value/copy.txt)" 10
check_equal "stdin: of a value is its text, a line" "$(od -c $results/of_value/copy.txt | head -1 | tr -s ' ')" "0000000 1 0 \n"
check_equal "stdin: of a list is its list file" "$(tr '\n' ' ' <$results/of_list/copy.txt)" "2 1 "
check "stdin: is empty when nothing is named" test -e $results/nothing/empty.txt -a ! -s $results/nothing/empty.txt
check "stdout: is not in the log, stderr is" \
  eval 'logged=$("$sluice" logs redirect.run largest) && grep -q "to the log" <<<"$logged" && ! grep -q "^10$" <<<"$logged"'

# -- the shell of sh: -----------------------------------------------------------------------------
# UC-012: nothing but declared variables is touched. UC-015, UC-016: a failure in a pipe or in the middle ends the script.
# UC-017: the line that failed is named. UC-018: a script larger than an argument may be.
cat >shell.yaml <<'YAML'
sluice: 1
name: shell
tasks:
  braces:
    sh: |
      printf 'one two\n' | awk '{print $1}'
      echo "${NOT_SET:-x}" '{"k": 1}' {a,b} $((1 + 2)) "$0" | sed "s,/.*/,,"
    stdout: text
    outputs: {text: {file: text.txt}}
  pipe:
    sh: |
      echo first
      false | tee log.txt
      echo >"$OUT_x"
    outputs: {x: {file: x}}
  middle:
    sh: |
      : one
      sh -c 'echo "three it is" >&2; exit 3'
      echo >"$OUT_x"
    outputs: {x: {file: x}}
  unknown:
    sh: |
      nosuchcmd --option
      touch "$OUT_x"
    outputs: {x: {file: x}}
  unset:
    sh: echo "$not_set_at_all"
  tolerant:
    sh: |
      set +e
      false
      set -e
      exit 4
  own_trap:
    sh: |
      trap 'echo "mine at $LINENO" >&2' ERR
      false
YAML
check_status "shell: the run ends with 1" 1 "$sluice" run shell.yaml
cp output shell.txt
says() { grep -qE -- "$1" shell.txt; }
check_equal "shell: braces, dollars and quotes reach bash untouched" \
  "$(tr '\n' ' ' <shell.run/results/braces/text.txt)" 'one x {"k": 1} a b 3 script '
check "shell: a failure in a pipe ends the script, its line is named" \
  says "pipe: .*exited with 1 at line 2 of its script: 'false \| tee log.txt'"
check "shell: a failure in the middle ends the script, its line is named" says "middle: .*exited with 3 at line 2 of its script"
check "shell: stderr is shown" says "three it is"
check "shell: a missing program ends the script" says "unknown: .*exited with 127 at line 1 of its script"
check "shell: an unset variable ends the script" says "not_set_at_all: unbound variable"
check "shell: a failure that the script tolerates is not blamed" eval 'says "tolerant: .*exit 4" && ! says "tolerant: .*at line"'
check "shell: a trap of the script's own is left alone" says "mine at 2"

# -- setup, cwd, as, keep_env ---------------------------------------------------------------------
# UC-022
mkdir -p tools
printf '#!/bin/bash\necho "tool $LEVEL of $(pwd -P)"\n' >tools/the-tool
chmod +x tools/the-tool
echo 'content of model' >model.nml
cat >start.yaml <<YAML
sluice: 1
name: start
params: {level: {type: int, default: 3}}
keep_env: ["SLURM_JOB_*"]
tasks:
  tool:
    setup: |
      echo "noise of setup"
      cat
      export PATH=\$PIPELINE_DIR/tools:\$PATH LEVEL=\$PARAM_level
      set +u
    run: the-tool
    stdout: text
    outputs: {text: {file: text.txt, keep: true}}
  shell:
    setup: |
      export LEVEL=7
      greet() { echo "hello \$1"; }
      export -f greet
    sh: |
      greet "\$LEVEL \$#" >"\$OUT_text"
      [[ \$- == *e*u* ]]
    outputs: {text: {file: text.txt}}
  bad_setup:
    setup: |
      echo "no licence server" >&2
      exit 9
    run: touch \${{ out.x }}
    outputs: {x: {file: x}}
  early_setup:
    setup: exit 0
    sh: touch "\$OUT_x"
    outputs: {x: {file: x}}
  module:
    setup: module load gcc
    run: gcc --version
  here:
    cwd: pipeline
    run: bash -c 'pwd -P; cat model.nml' model.nml
    stdout: text
    outputs: {text: {file: text.txt}}
  placed:
    run: bash -c 'ls -1 | sort; cat "the model.nml"'
    stdout: text
    inputs: {model: {file: model.nml, as: "the model.nml"}, other: tool.text}
    outputs: {text: {file: text.txt}}
  batch:
    sh: env | grep -E '^(SLURM|PMIX)_' | sort
    stdout: text
    keep_env: [PMIX_RANK]
    outputs: {text: {file: text.txt}}
  batch_of_all:
    sh: env | grep -E '^(SLURM|PMIX)_' | sort
    stdout: text
    outputs: {text: {file: text.txt}}
YAML
check_status "start: the run ends with 1" 1 \
  env SLURM_JOB_ID=77 SLURM_JOB_NAME=n SLURM_NTASKS=1 PMIX_NAMESPACE=x "$sluice" run start.yaml
cp output start.txt
says() { grep -qE -- "$1" start.txt; }
results=start.run/results
check_equal "setup: run starts in its environment, found through its PATH" \
  "$(sed 's/ of .*//' $results/tool/text.txt)" "tool 3"
check "setup: what it prints goes to the log, it cannot read the command's stdin" \
  eval '"$sluice" logs start.run tool | grep -q "noise of setup"'
check_equal "setup: exported functions and variables are there in sh, with our options" \
  "$(cat $results/shell/text.txt)" "hello 7 0"
check "setup: its failure has a cause of its own and is shown" says "bad_setup: .*ended by setup.*setup exited with 9"
check "setup: its stderr is shown" says "no licence server"
check "setup: one that ends the shell is a failure too" says "early_setup: .*ended by setup.*the command not started"
check "setup: an unknown 'module' is explained" says "module: .*ended by setup.*modules.sh"
check_equal "cwd: pipeline starts programs in the pipeline folder" "$(tr '\n' ' ' <$results/here/text.txt)" \
  "$(pwd -P) content of model "
check_equal "as: the input is at the top of the attempt's directory" "$(tr '\n' ' ' <$results/placed/text.txt)" \
  "in text.txt the model.nml content of model "
check_equal "keep_env: of the task and of all" "$(tr '\n' ' ' <$results/batch/text.txt)" \
  "SLURM_JOB_ID=77 SLURM_JOB_NAME=n "
check_equal "keep_env: of all only" "$(tr '\n' ' ' <$results/batch_of_all/text.txt)" "SLURM_JOB_ID=77 SLURM_JOB_NAME=n "
check_status "start again: what is done stays done" 1 "$sluice" run start.yaml
check_says "start again: says so" "6 known from earlier submissions"
sed -i 's/LEVEL=7/LEVEL=8/; s/as: "the model.nml"/as: renamed.nml/; s/cat "the model.nml"/cat renamed.nml/' start.yaml
check_status "start: setup and as are in the key" 1 "$sluice" run start.yaml
check_says "start: only those two are made again" "\(2 ran now\)"
check_equal "start: a changed setup shows" "$(cat $results/shell/text.txt)" "hello 8 0"
check_equal "shell: it has the task's setup" \
  "$("$sluice" shell start.run shell -c 'greet "$LEVEL"; echo "${OUT_text##*/}"' 2>/dev/null | tr '\n' ' ')" "hello 8 text.txt "
check_status "shell: a failing setup is named" 9 "$sluice" shell start.run bad_setup -c true
check_says "shell: no shell was started" "setup failed: there was no shell"
check_equal "shell: cwd: pipeline starts there" "$("$sluice" shell start.run here -c pwd 2>/dev/null)" "$scratch"
echo 'another model' >model.nml
check_status "cwd: pipeline: a named file is in the key" 1 "$sluice" run start.yaml
check_equal "cwd: pipeline: a changed file shows" "$(tail -n 1 $results/here/text.txt)" "another model"

# -- defaults and path params ---------------------------------------------------------------------
mkdir -p data
echo reference >data/reference.txt
cat >defaults.yaml <<'YAML'
sluice: 1
name: defaults
params:
  reference: {type: path, env: REFERENCE, default: data/reference.txt, expect: file}
defaults:
  setup: export FROM_SETUP=yes
  env: {LEVEL: "1", NAME: default}
  resources: {cpus: 1, memory: 10MiB}
  retry: {exit: {max: 1}}
tasks:
  plain:
    sh: echo "$LEVEL $NAME ${FROM_SETUP:-no} $(cat "$PARAM_reference")"
    stdout: text
    outputs: {text: {file: text.txt}}
  own:
    setup: export FROM_SETUP=own
    env: {NAME: own}
    sh: echo "$LEVEL $NAME $FROM_SETUP"
    stdout: text
    outputs: {text: {file: text.txt}}
YAML
check "defaults: runs" "$sluice" run defaults.yaml
check_equal "defaults: hold for a task without its own" "$(cat defaults.run/results/plain/text.txt)" "1 default yes reference"
check_equal "defaults: the task wins, entry by entry" "$(cat defaults.run/results/own/text.txt)" "1 own own"
echo 'another reference' >data/reference.txt
check "path param: its content is not in the key" "$sluice" run defaults.yaml
check_says "path param: so nothing is done" "nothing to do"
echo 'elsewhere' >elsewhere.txt
check "path param: from the environment" env REFERENCE="$PWD/elsewhere.txt" "$sluice" run defaults.yaml
check_equal "path param: the variable counts before the default" "$(cat defaults.run/results/plain/text.txt)" "1 default yes elsewhere"
check "path param: --set counts before the variable" \
  env REFERENCE="$PWD/elsewhere.txt" "$sluice" run defaults.yaml --set reference=data/reference.txt
check_equal "path param: --set counts" "$(cat defaults.run/results/plain/text.txt)" "1 default yes another reference"
check_status "path param: what is not there is exit 2" 2 env REFERENCE=nowhere "$sluice" check defaults.yaml
check_says "path param: names the variable and the path" "from the variable REFERENCE: there is no '.*/nowhere', a file is expected"

# -- odd names ------------------------------------------------------------------------------------
# UC-014
mkdir -p odd
odd=("a b.dat" "it's.dat" 'x(1).dat' "-n.dat" 'q;touch pwned.dat' $'new\nline.dat' 'tab	.dat' 'a"b.dat' '*.dat' '$HOME.dat' 'ü.dat' 'a,b=c%41.dat')
for name in "${odd[@]}"; do printf '%s|' "$name" >"odd/$name"; done
cat >odd.yaml <<'YAML'
sluice: 1
name: odd names
tasks:
  copy:
    foreach: {name: ["a b.dat", "it's.dat", "x(1).dat", "-n.dat", "q;touch pwned.dat", "new\nline.dat", "tab\t.dat", 'a"b.dat', "*.dat", "$HOME.dat", "ü.dat", "a,b=c%41.dat"]}
    run: cat ${{ in.part }}
    stdout: text
    inputs: {part: {file: "odd/${{ item.name }}"}}
    outputs: {text: {file: text.txt}}
  shell:
    foreach: {name: ["a b.dat", "it's.dat", "x(1).dat", "-n.dat", "q;touch pwned.dat", "new\nline.dat", "tab\t.dat", 'a"b.dat', "*.dat", "$HOME.dat", "ü.dat", "a,b=c%41.dat"]}
    sh: |
      cat "$IN_part" >"$OUT_text"
      [[ $(cat "$IN_part") == "$ITEM_name|" ]]
      [[ $IN_part != *[[:cntrl:]]* ]]
    inputs: {part: {file: "odd/${{ item.name }}"}}
    outputs: {text: {file: text.txt}}
  argv:
    foreach: {name: ["a b.dat", "new\nline.dat", "q;touch pwned.dat"]}
    run: [printf, "%s|", "${{ item.name }}"]
    stdout: text
    outputs: {text: {file: text.txt}}
  gather:
    run: xargs -d '\n' cat
    stdin: texts
    stdout: all
    inputs: {texts: copy.text}
    outputs: {all: {file: all.txt}}
  table:
    sh: cp "$IN_texts_ITEMS" "$OUT_table"
    inputs: {texts: copy.text}
    outputs: {table: {file: table.tsv}}
YAML
check "odd names: runs" "$sluice" run odd.yaml
check_equal "odd names: every file was read, in item order" "$(cat odd.run/results/gather/all.txt)" \
  "$(printf '%s|' "${odd[@]}")"
check "odd names: nothing in a name was executed" eval '[[ -z $(find . -name pwned.dat -o -name pwned) ]]'
check_equal "odd names: items arrive as one argument" "$(cat 'odd.run/results/argv/'*new*)" $'new\nline.dat|'
check_equal "items table: has a header and a line for each item" \
  "$(head -n 1 odd.run/results/table/table.tsv; wc -l <odd.run/results/table/table.tsv)" $'name\tpath\n13'
check_equal "items table: values are as typed, control characters encoded" \
  "$(cut -f 1 odd.run/results/table/table.tsv | sed -n '6,8p;13p' | tr '\n' ' ')" \
  'q;touch pwned.dat new%0Aline.dat tab%09.dat a,b=c%41.dat '

# -- values ---------------------------------------------------------------------------------------
cat >values.yaml <<'YAML'
sluice: 1
name: values
tasks:
  make:
    foreach: {n: [1, 2]}
    sh: |
      echo $((ITEM_n * 10)) >"$OUT_i"
      echo "1.50" >"$OUT_f"
      echo true >"$OUT_b"
      printf 'two\nlines "%s"\n' "$ITEM_n" >"$OUT_s"
      echo '["a b", "c", 3]' >"$OUT_l"
    outputs: {i: {value: int}, f: {value: float}, b: {value: bool}, s: {value: string}, l: {value: list}}
  one:
    foreach: {n: [1, 2]}
    run: [printf, "<%s>", "${{ in.i }}", "${{ in.i + 1 }}", "${{ in.f }}", "${{ in.f * 2 }}", "${{ in.b }}", "${{ not in.b }}", "${{ in.s }}", "${{ in.l }}", "${{ len(in.l) }}"]
    stdout: text
    inputs: {i: make.i, f: make.f, b: make.b, s: make.s, l: make.l}
    outputs: {text: {file: text.txt}}
  shell:
    foreach: {n: [1, 2]}
    sh: printf '<%s>' "$IN_i" "$IN_f" "$IN_b" "$IN_s" "$IN_l" "$TWICE"
    env: {TWICE: "${{ in.i * 2 }}"}
    stdout: text
    inputs: {i: make.i, f: make.f, b: make.b, s: make.s, l: make.l}
    outputs: {text: {file: text.txt}}
  all:
    run: [printf, "<%s>", "${{ in.i }}", "${{ max(in.i) }}", "${{ in.s }}"]
    stdout: text
    inputs: {i: make.i, s: make.s}
    outputs: {text: {file: text.txt}}
  lines:
    sh: cat "$IN_i" "$IN_f" "$IN_b" "$IN_s" "$IN_l" "$IN_i_ITEMS"
    stdout: text
    inputs: {i: make.i, f: make.f, b: make.b, s: make.s, l: make.l}
    outputs: {text: {file: text.txt}}
YAML
check "values: runs" "$sluice" run values.yaml
results=values.run/results
check_equal "values: in words, as they are and computed with" "$(cat $results/one/n=1.text.txt)" \
  $'<10><11><1.50><3.0><true><false><two\nlines "1"><a b><c><3><3>'
check_equal "values: as variables" "$(cat $results/shell/n=2.text.txt)" \
  $'<20><1.50><true><two\nlines "2"><["a b", "c", 3]><40>'
check_equal "values: gathered, as words" "$(cat $results/all/text.txt)" \
  $'<10><20><20><two\nlines "1"><two\nlines "2">'
check "values: gathered, as lines of JSON and as a table" diff $results/lines/text.txt - <<'TEXT'
10
20
1.50
1.50
true
true
"two\nlines \"1\""
"two\nlines \"2\""
["a b", "c", 3]
["a b", "c", 3]
n	value
1	10
2	20
TEXT

# -- size and bytes -------------------------------------------------------------------------------
# UC-032: output is bytes, whatever the locale. UC-110: megabytes of script; too long a command is refused in words.
{
  printf 'sluice: 1\nname: large\ntasks:\n  script:\n    sh: |\n'
  for ((i = 0; i < 50000; i++)); do echo "      : a line of a hundred bytes or so that does nothing but be there, this is number $i of many lines"; done
  printf '      echo "the end" >"$OUT_x"\n    outputs: {x: {file: x}}\n'
  printf '  words:\n    run:\n      - bash\n      - -c\n      - "echo $#"\n'
  for ((i = 0; i < 12; i++)); do printf '      - "%0100000d"\n' "$i"; done
  printf '    stdout: x\n    outputs: {x: {file: x}}\n'
  printf '  bytes:\n    sh: |\n      printf '"'M\\\\xe4rz \\\\x90\\\\x00\\\\n'"'\n      printf '"'\\\\xff\\\\xfe bad\\\\n'"' >&2\n      exit 1\n'
} >large.yaml
check_status "large: ends with 1 for the task that fails" 1 env LANG=C LC_ALL=C "$sluice" run large.yaml
check "large: a script of 5 MB runs" grep -q "the end" large.run/results/script/x
check_equal "large: words of 1.2 MB are passed on" "$(cat large.run/results/words/x)" 11
check "bytes: the log has them as they were" eval '"$sluice" logs large.run bytes | LC_ALL=C grep -qaP "M\xe4rz \x90\x00"'
check "bytes: status is JSON all the same" eval '"$sluice" status large.run --json | python3 -c "import json, sys; json.load(sys.stdin)"'
