# What has to run again after a death, computed from the journal alone: an oracle for scripts that
# shares nothing with Sluice but the format of its records. It prints `task[item]` per line, sorted.
#
#   awk -f rerun_minimum.awk GRAPH FILES journal.1.jsonl journal.2.jsonl ...
#   awk -v until_lost=1 -f rerun_minimum.awk GRAPH FILES journal.1.jsonl
#
# GRAPH, made by the test:  makes TAB instance TAB output TAB kind (file, value, or result, a file)
#                           reads TAB instance TAB producer TAB output
# FILES: the paths of all files, relative to the run directory, that survived the death.
#
# Instances that must run: those without a done record; those whose result is not in the run
# directory; and, until nothing changes, the producers of what one of these reads and is nowhere.
# Node stores count as gone: after the death of a whole run this is the exact set.
#
# until_lost=1: for a run that goes on without some workers; replicas of others may have survived, so
# no instance outside the set may run again. A worker died some time after its last report and
# before the record `worker lost`, and a failed fetch may tell of it earlier than the record: the set
# is what must run as of the record, and of what was done as of the last report what must run then.
# With several lost workers it is what one of these deaths allows.
BEGIN {FS = "\t"}

function member(name,    start) {
  if (!match($0, "\"" name "\":\"[^\"]*\"")) return ""
  start = RSTART + length(name) + 4
  return substr($0, start, RSTART + RLENGTH - 1 - start)
}
function label(    item) {
  item = member("item")
  return member("task") (item == "" ? "" : "[" item "]")
}
function must_run(instance) {
  if (instance in must) return
  must[instance] = 1
  queue[queued++] = instance
}
function apply(line) {
  $0 = line
  record = member("t")
  if (record == "done") done[label()] = 1
  if (record == "durable") {
    place[label(), member("output")] = member("path")
    temporary[label(), member("output")] = member("temporary")
  }
  if (record == "removed") delete place[label(), member("output")]
}
function available(instance, output) {
  if (!(instance in done)) return 0
  if (kind[instance, output] == "value") return 1
  if (!((instance, output) in place)) return 0
  return until_lost || place[instance, output] in there || temporary[instance, output] in there
}
function find_must(    instance, count, names, i, at, edges, edge) {
  split("", must)
  queued = 0
  for (instance in made) {
    if (!(instance in done)) must_run(instance)
    count = split(outputs[instance], names, " ")
    for (i = 1; i <= count; ++i)
      if (kind[instance, names[i]] == "result" && !available(instance, names[i])) must_run(instance)
  }
  for (at = 0; at < queued; ++at) {
    count = split(reads[queue[at]], edges, "\n")
    for (i = 1; i < count; ++i) {
      split(edges[i], edge, FS)
      if (!available(edge[1], edge[2])) must_run(edge[1])
    }
  }
}

FILENAME != last_file {last_file = FILENAME; ++file}

file == 1 && $1 == "makes" {made[$2] = 1; kind[$2, $3] = $4; outputs[$2] = outputs[$2] " " $3}
file == 1 && $1 == "reads" {reads[$2] = reads[$2] $3 FS $4 "\n"}
file == 2 {there[$0] = 1}

# A record that was cut short has no sum.
file > 2 && /,"sum":"[0-9a-f]+"}$/ {
  line[++lines] = $0
  if (!until_lost) next
  match($0, /"worker":[0-9]+/)
  worker = substr($0, RSTART, RLENGTH)
  if (member("t") == "done") last_report[worker] = lines
  if (member("t") == "worker" && member("state") == "lost") {
    lost[lines] = 1
    ++losses
    if (worker in last_report) reported[last_report[worker]] = 1
  }
}

END {
  for (i = 1; i <= lines; ++i) {
    apply(line[i])
    if (!(i in lost) && !(i in reported)) continue
    find_must()
    for (instance in must) if (i in lost || instance in done) set[instance] = 1
  }
  if (!losses) {
    find_must()
    for (instance in must) set[instance] = 1
  }
  for (instance in set) print instance | "sort"
}
