#!/bin/bash
# Programs that fight with files: write into their inputs, delete or lock their directory, fill the
# node's memory, make names of every byte. What others read stays as it was sealed, the run says
# what happened, and nothing stays.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
says() { grep -qE -- "$1" files.txt; }

# -- inputs, directories --------------------------------------------------------------------------
# Who writes has the whole node and goes first, so that it is known who reads before and who after.
cat >files.yaml <<YAML
sluice: 1
name: hostile files
tasks:
  seed:
    foreach: {how: [appends, chmods, same_size, removes, fails, touches, unlinks, reads]}
    sh: |
      echo "\$ITEM_how" >>made
      cat made >>"\$PIPELINE_DIR/seeds"
      printf 'original of %s\n' "\$ITEM_how" >"\$OUT_part"
    outputs: {part: {file: part.txt}}
  hostile:
    foreach: {how: [appends, chmods, same_size, removes, fails, touches, unlinks, reads]}
    priority: 10
    resources: {cpus: $(nproc)}
    sh: |
      file=\$(readlink -f "\$IN_part")
      case \$ITEM_how in
        appends) echo more >>"\$IN_part" ;;
        chmods) chmod u+w "\$file"; echo more >>"\$file" ;;
        same_size) chmod u+w "\$file"; printf ORIGINAL | dd of="\$file" conv=notrunc status=none ;;
        removes) rm -f "\$file" ;;
        fails) chmod u+w "\$file"; echo more >>"\$file"; exit 7 ;;
        touches) touch -d '2001-01-01' "\$file" ;;
        unlinks) rm "\$IN_part"; echo mine >"\$IN_part" ;;
      esac
    inputs: {part: seed.part}
  reader:
    foreach: {how: [appends, chmods, same_size, removes, fails, touches, unlinks, reads]}
    sh: cat "\$IN_part" >"\$OUT_copy"
    inputs: {part: seed.part}
    outputs: {copy: {file: copy.txt}}
  deletes:
    sh: echo x >"\$OUT_x"; rm -rf "\$PWD"
    outputs: {x: {file: x.txt}}
  deletes_around:
    sh: rm -rf "\$PWD" "\$TMPDIR" "\$PWD"/../*
    outputs: {x: {file: x.txt}}
  moves:
    sh: mv "\$PWD" "\$PWD.away"
    outputs: {x: {file: x.txt}}
  locks:
    sh: |
      mkdir -p deep/er
      echo y >deep/er/file
      chmod 0 deep/er/file deep/er deep .
    outputs: {x: {file: x.txt}}
  deep:
    sh: |
      for ((i = 0; i < 60; i++)); do printf -v name '%0100d' \$i; mkdir "\$name"; cd "\$name"; done
      : >bottom
      exit 8
YAML
# files_are_guarded WHO COMMAND...: the same for root and for a user.
files_are_guarded() {
  local who=$1 how
  shift
  check_status "$who: the run ends with 1" 1 "$@" run files.yaml
  cp "$scratch/output" files.txt
  if [[ $who == root ]]; then
    check "root: a write into an input is told" says 'hostile\[how=appends\]: .*part\.txt.* written to while .*20 bytes before, 25 now'
  else
    check "$who: a plain write into an input is refused by the system" says 'Permission denied'
  fi
  check "$who: so is one after a chmod" says 'hostile\[how=chmods\]: .*written to while this attempt ran'
  check "$who: so is one that changes no size" says 'hostile\[how=same_size\]: .*written to while this attempt ran'
  check "$who: an input that was removed is told" says 'hostile\[how=removes\]: .*removed while this attempt ran'
  check "$who: what fails by itself is told as that" says 'hostile\[how=fails\]: .*ended by exit 7'
  check "$who: to touch an input or to replace the link to it harms nobody" \
    eval '! says "hostile.how=(touches|unlinks).: .*ended by"'
  for how in appends chmods same_size removes fails touches unlinks reads; do
    echo "original of $how"
  done >expected
  for how in appends chmods same_size removes fails touches unlinks reads; do
    cat "files.run/results/reader/how=$how.copy.txt"
  done >found 2>&1
  check "$who: whoever reads after that reads what was sealed" diff expected found
  check_equal "$who: what was spoiled was made again, once, and nothing else" \
    "$(sort seeds | uniq -c | awk '$1 > 1 {print $1, $2}' | tr '\n' ' ')" \
    "$([[ $who == root ]] && echo "2 appends ")2 chmods 2 fails 2 removes 2 same_size "
  check "$who: a deleted directory is told" says "deletes: .*'x\.txt'.*that directory is gone"
  check "$who: so is one that took its surroundings along" says "deletes_around: .*that directory is gone"
  check "$who: so is one that was moved" says "moves: .*that directory is gone"
  check "$who: a locked one is told as what it lacks" says "locks: .*(no file 'x\.txt'|Permission denied)"
  check "$who: one that is deeper than a path may be fails as it failed" says 'deep: .*ended by exit 8'
}
if [[ $(id -u) == 0 ]]; then files_are_guarded root "$sluice"; fi
if [[ $(id -u) != 0 ]]; then
  files_are_guarded "a user" "$sluice"
elif command -v setpriv >/dev/null; then
  mkdir theirs
  cp "$sluice" "${build:?}/sluice-h5" files.yaml theirs
  chown -R 65534 theirs
  chmod 755 "$scratch"
  cd theirs || exit
  files_are_guarded "a user" setpriv --reuid=65534 --regid=65534 --clear-groups \
    env TMPDIR="$PWD" HOME="$PWD" ./sluice
  check "a user: nothing stays of what was locked" eval '[[ -z $(find . -maxdepth 1 -name "sluice.*") ]]'
  cd "$scratch" || exit
else
  skip "a user: inputs are guarded" "needs setpriv"
fi

# -- node memory that is full ---------------------------------------------------------------------
cat >full.yaml <<YAML
sluice: 1
name: full memory
tasks:
  fills:
    priority: 10
    resources: {cpus: $(nproc)}
    sh: |
      head -c 100000000 /dev/zero >/dev/shm/ballast || true
      head -c 100000000 /dev/zero >"\$OUT_x"
    outputs: {x: {file: x}}
  good:
    foreach: {n: {range: [0, 6]}}
    # What was staged before has its place already: that place is full when its turn comes.
    retry: {exit: {max: 2}}
    sh: head -c 300000 /dev/zero | tr '\\0' "\$ITEM_n" >"\$OUT_part"
    outputs: {part: {file: part}}
  sum:
    sh: while read -r path; do cksum <"\$path"; done <"\$IN_parts" >"\$OUT_sums"
    inputs: {parts: good.part}
    outputs: {sums: {file: sums}}
YAML
for ((n = 0; n < 6; n++)); do head -c 300000 /dev/zero | tr '\0' "$n" | cksum; done >expected
small_memory() {
  unshare -m bash -c 'mount -t tmpfs -o size=8m,mode=1777 tmpfs /dev/shm && exec "$@"' bash "$@"
}
if small_memory true 2>/dev/null; then
  check_status "full node memory: the run ends with 1" 1 small_memory "$sluice" run full.yaml
  check_says "full node memory: who filled it is told what the system said" 'No space left on device'
  check "full node memory: the others' results are right, from the disk" cmp expected full.run/results/sum/sums
else
  skip "full node memory: the others' results are right" "needs the right to mount"
fi

# -- names of every byte --------------------------------------------------------------------------
# `names.py make FOLDER all`: a file for each byte but `/` and NUL, alone and after a letter, each
# holding its name; `items`: only after a letter. `sum FOLDER`: what a reader of all of them in the
# order of their bytes gets.
cat >names.py <<'PY'
import os, subprocess, sys
folder = os.fsencode(sys.argv[2])
bytes_of_names = [bytes([b]) for b in range(1, 256) if b != ord('/')]
names = [b'x' + b for b in bytes_of_names] + [b'\xff' * 255, b'-rf', b'a=b,c%41', b'*']
if sys.argv[1] == 'make':
    os.makedirs(folder, exist_ok=True)
    if sys.argv[3] == 'all':
        names += [b for b in bytes_of_names if b != b'.'] + [b'..x', b'.hidden']
    for name in names:
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(name)
else:
    content = b''.join(open(os.path.join(folder, n), 'rb').read() for n in sorted(os.listdir(folder)))
    sys.stdout.flush()
    subprocess.run(['cksum'], input=content)
PY
cat >names.yaml <<'YAML'
sluice: 1
name: names
tasks:
  tree:
    run: python3 names.py make ${{ out.tree }} all
    cwd: pipeline
    outputs: {tree: {dir: tree}}
  read:
    run: python3 names.py sum ${{ in.tree }}
    cwd: pipeline
    stdout: sum
    inputs: {tree: tree.tree}
    outputs: {sum: {file: sum}}
  each:
    foreach: {path: {glob: "odd/*"}}
    sh: |
      # $(...) would drop a newline at the end of a name.
      printf %s "${ITEM_path#odd/}" | cmp - "$IN_part"
      cat "$IN_part" >"$OUT_copy"
    inputs: {part: {file: "${{ item.path }}"}}
    outputs: {copy: {file: copy.txt}}
  gather:
    sh: while read -r path; do cat "$path"; done <"$IN_copies" | cksum >"$OUT_sum"
    inputs: {copies: each.copy}
    outputs: {sum: {file: sum}}
YAML
python3 names.py make odd items
python3 names.py make all all
check "names of every byte: the run succeeds" "$sluice" run names.yaml
check_equal "names of every byte: in a directory that is an output, and read as an input" \
  "$(cat names.run/results/read/sum)" "$(python3 names.py sum all)"
check_equal "names of every byte: as items, variables and inputs, in the order of their bytes" \
  "$(cat names.run/results/gather/sum)" "$(python3 names.py sum odd)"
check_equal "names of every byte: an instance each, and no name is taken for another" \
  "$(find names.run/failed -mindepth 1 2>/dev/null | wc -l) $(find odd -type f -printf x | wc -c)" "0 258"
check "names of every byte: queries show them on one line each" eval \
  '(($("$sluice" status names.run | wc -l) < 20)) && "$sluice" status names.run --json | python3 -c "import json, sys; json.load(sys.stdin)"'
check "names of every byte: nothing to do the second time" "$sluice" run names.yaml
check_says "names of every byte: it says so" "nothing to do"
