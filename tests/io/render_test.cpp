#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "io/pipeline.h"
#include "tests/support/spec_folder.h"

namespace {

using namespace sluice;
using namespace sluice::io;
using scheduler::InstanceId;
using scheduler::ObjectId;
using test::SpecFolder;

std::string shown(const Word& word) {
  std::string out;
  for (const Piece& piece : word) {
    switch (piece.kind) {
      case Piece::Kind::kText:
        out += piece.text;
        break;
      case Piece::Kind::kInput:
        out += "<in" + std::to_string(piece.index) + ">";
        break;
      case Piece::Kind::kInputPaths:
        out += "<paths" + std::to_string(piece.index) + ">";
        break;
      case Piece::Kind::kOutput:
        out += "<out" + std::to_string(piece.index) + ">";
        break;
    }
  }
  return out;
}

using Texts = std::vector<std::string>;

Texts words(const AttemptSpec& spec) {
  Texts out;
  for (const Word& word : spec.words) {
    out.push_back(shown(word));
  }
  return out;
}

struct Values {
  std::map<ObjectId, std::string> texts;
  std::string none;
  Pipeline::ValueText lookup() {
    return [this](ObjectId object) -> const std::string& {
      const auto found = texts.find(object);
      return found == texts.end() ? none : found->second;
    };
  }
};

std::string value_of(const AttemptSpec& spec, const std::string& name) {
  for (const auto& [key, value] : spec.environment) {
    if (key == name) {
      return value;
    }
  }
  return "(unset)";
}

std::string task(const std::string& body) { return "sluice: 1\ntasks:\n" + body; }

// The static key of an instance of a spec.
scheduler::Hash128 key(SpecFolder& folder, const std::string& text, const std::string& name = "a",
                       const std::string& item = "",
                       std::vector<std::pair<std::string, std::string>> set = {}) {
  const auto p = folder.read(text, std::move(set));
  REQUIRE_MESSAGE(p, folder.printed);
  return p->graph.static_key(p->find(name, item));
}

}  // namespace

TEST_CASE("render: words carry items, params, the folder, and paths as pieces") {
  SpecFolder folder;
  folder.write("data/obs.h5", "obs");
  const auto p = folder.read(R"(sluice: 1
params:
  tol: {type: float, default: 1.0e-4}
  flags: {type: list, default: [-v, "two words"]}
tasks:
  a:
    foreach: {grid: [64]}
    run: prog 'a b' --grid=${{ item.grid }} ${{ item.grid * 2 }} ${{ params.tol }} ${{ params.flags }}
         ${{ in.obs }} --out=${{ out.x }}.tmp ${{ dir }}/model.nml ''
    inputs: {obs: {file: data/obs.h5}}
    outputs: {x: {h5: x.h5}, s: {value: int, file: s.txt}}
    resources: {cpus: 3}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  Values values;
  const auto spec = p->render(InstanceId(0), values.lookup());
  REQUIRE(spec.ok());
  CHECK(spec->label == "a[grid=64]");
  CHECK(words(*spec) == Texts{"prog", "a b", "--grid=64", "128", "1.0e-4", "-v", "two words",
                              "<in0>", "--out=<out0>.tmp", folder.path().string() + "/model.nml",
                              ""});
  CHECK(spec->cpus == 3);
  CHECK(spec->pipeline_folder == folder.path().string());
  REQUIRE(spec->inputs.size() == 1);
  CHECK(spec->inputs[0].files[0].source_path == (folder.path() / "data/obs.h5").string());
  CHECK(spec->inputs[0].files[0].file_name == "obs.h5");
  CHECK_FALSE(spec->inputs[0].files[0].object.valid());
  REQUIRE(spec->outputs.size() == 2);
  CHECK(spec->outputs[0].kind == scheduler::OutputKind::kH5);
  CHECK(spec->outputs[0].result);
  CHECK(spec->outputs[1].file_name == "s.txt");
  CHECK(spec->outputs[1].value_type == ValueType::kInt);
  CHECK(p->command_text(InstanceId(0)).find("prog 'a b' --grid=64 128 1.0e-4") == 0);
  CHECK(p->command_text(InstanceId(0)).find("${{ in.obs }} --out=${{ out.x }}.tmp") !=
        std::string::npos);
}

TEST_CASE("render: a script gets only the params and items that it names") {
  SpecFolder folder;
  const auto p = folder.read(R"(sluice: 1
params: {tol: {type: float, default: 1.0e-4}, n: {type: int, default: 3},
         l: {type: list, default: [a, b]}}
tasks:
  a:
    foreach: {x: [1], y: [2], z: [3]}
    sh: |
      prog $PARAM_tol "${ITEM_x}" $PARAM_l
      python3 -c 'import os; print(os.environ["ITEM_z"])'
    env: {LEVEL: "v${{ params.n + 1 }}", HERE: "${{ dir }}/lib"}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  Values values;
  const auto spec = p->render(InstanceId(0), values.lookup());
  REQUIRE(spec.ok());
  CHECK(spec->words.empty());
  CHECK(spec->script.find("prog $PARAM_tol") == 0);
  CHECK(value_of(*spec, "PARAM_tol") == "1.0e-4");
  CHECK(value_of(*spec, "PARAM_n") == "(unset)");
  CHECK(value_of(*spec, "PARAM_l") == "a\nb");
  CHECK(value_of(*spec, "ITEM_x") == "1");
  CHECK(value_of(*spec, "ITEM_y") == "(unset)");
  CHECK(value_of(*spec, "ITEM_z") == "3");
  CHECK(value_of(*spec, "LEVEL") == "v4");
  CHECK(value_of(*spec, "HERE") == folder.path().string() + "/lib");
}

// a[i] --> one[i] (value, one-to-one);  a[i] --> all (value, gather)
TEST_CASE("render: values of inputs are numbers and lists in expressions") {
  SpecFolder folder;
  const auto p = folder.read(task(R"(  a:
    foreach: {i: [1, 2, 3]}
    run: a
    outputs: {score: {value: int}, names: {value: list}, f: {file: f}}
  one:
    foreach: {i: [1, 2, 3]}
    run: b ${{ in.score + 1 }} ${{ in.score }} ${{ in.names }} ${{ len(in.names) }}
    inputs: {score: a.score, names: a.names}
  all:
    run: c ${{ max(in.scores) }} ${{ in.scores }} ${{ in.f.paths }} ${{ in.f }}
    inputs: {scores: a.score, f: a.f}
)"));
  REQUIRE_MESSAGE(p, folder.printed);
  Values values;
  for (uint32_t i = 0; i < 3; ++i) {
    values.texts[p->graph.object(InstanceId(i), 0)] = std::to_string(10 * (i + 1));
    values.texts[p->graph.object(InstanceId(i), 1)] = R"(["x y", 2])";
  }
  const auto one = p->render(p->find("one", "i=2"), values.lookup());
  REQUIRE(one.ok());
  CHECK(words(*one) == Texts{"b", "21", "20", "x y", "2", "2"});
  const auto all = p->render(p->find("all", ""), values.lookup());
  REQUIRE(all.ok());
  CHECK(words(*all) == Texts{"c", "30", "10", "20", "30", "<paths1>", "<in1>"});
  CHECK(all->inputs[0].is_list);
  CHECK(all->inputs[0].files[2].value == "30");
  CHECK(all->inputs[1].files[2].item == "i=3");
  CHECK(all->inputs[1].files[2].file_name == "i=3.f");
  CHECK(all->inputs[1].files[0].object == p->graph.object(InstanceId(0), 2));
}

TEST_CASE("render: the items of a list are as they were written") {
  SpecFolder folder;
  const auto p = folder.read(task(R"(  a: {run: a, outputs: {xs: {value: list}}}
  b: {run: "b ${{ in.xs }}", inputs: {xs: a.xs}}
)"));
  REQUIRE_MESSAGE(p, folder.printed);
  const auto items = [&](const std::string& text) {
    Values values;
    values.texts[p->graph.object(InstanceId(0), 0)] = text;
    const auto b = p->render(p->find("b", ""), values.lookup());
    REQUIRE(b.ok());
    Texts found = words(*b);
    found.erase(found.begin());
    return found;
  };
  CHECK(items(R"([0.10, 1e5 ,123456789012345678901234,-0, true])") ==
        Texts{"0.10", "1e5", "123456789012345678901234", "-0", "true"});
  CHECK(items(R"( [ "a, \"]\"", [1, "]"], {"k": [2]} ] )") ==
        Texts{"a, \"]\"", R"([1, "]"])", R"({"k": [2]})"});
  CHECK(items("[ ]").empty());
  CHECK(items("[\n\"\"\n]") == Texts{""});
}

TEST_CASE("render: an expression that fails at run time is an error, not a crash") {
  SpecFolder folder;
  const auto p = folder.read(task(R"(  a:
    run: a
    outputs: {n: {value: int}}
  b:
    run: b ${{ in.n + 1 }}
    inputs: {n: a.n}
)"));
  REQUIRE_MESSAGE(p, folder.printed);
  Values values;
  values.texts[ObjectId(0)] = "9223372036854775807";
  const auto overflow = p->render(InstanceId(1), values.lookup());
  REQUIRE_FALSE(overflow.ok());
  CHECK(overflow.error().message ==
        "in '${{ in.n + 1 }}': the result does not fit into a number: overflow");
  values.texts[ObjectId(0)] = "many";
  CHECK(p->render(InstanceId(1), values.lookup()).error().message ==
        "value 'many' of input 'n' is not of its declared type");
}

TEST_CASE("render: a program with a slash is one of the pipeline folder") {
  SpecFolder folder;
  folder.write_program("bin/solve", "#!/bin/sh\n");
  const auto p = folder.read(task("  a: {run: bin/solve -x}\n  b: {run: solve}\n"));
  REQUIRE_MESSAGE(p, folder.printed);
  Values values;
  CHECK(words(*p->render(InstanceId(0), values.lookup())) ==
        Texts{(folder.path() / "bin/solve").string(), "-x"});
  CHECK(words(*p->render(InstanceId(1), values.lookup())) == Texts{"solve"});
}

TEST_CASE("render: one source file per item") {
  SpecFolder folder;
  folder.write("d/a.dat", "1");
  folder.write("d/b.dat", "2");
  const auto p = folder.read(task(R"(  a:
    foreach: {s: [a, b]}
    run: prog ${{ in.x }}
    inputs: {x: {file: "d/${{ item.s }}.dat"}}
)"));
  REQUIRE_MESSAGE(p, folder.printed);
  Values values;
  CHECK(p->render(InstanceId(1), values.lookup())->inputs[0].files[0].source_path ==
        (folder.path() / "d/b.dat").string());
  CHECK(p->graph.static_key(InstanceId(0)) != p->graph.static_key(InstanceId(1)));
}

TEST_CASE("key: changes with the command, items, env, outputs, sources and files it names") {
  SpecFolder folder;
  folder.write("obs", "1");
  folder.write("model", "1");
  folder.write("lib", "1");
  const std::string head = "  a:\n    run: prog ${{ in.obs }} ${{ dir }}/model\n";
  const std::string rest =
      "    inputs: {obs: {file: obs}}\n    uses: [lib]\n    outputs: {x: {file: x}}\n";
  const auto base = key(folder, task(head + rest));
  CHECK(key(folder, task(head + rest)) == base);
  CHECK(key(folder, task("  a:\n    run: prog2 ${{ in.obs }} ${{ dir }}/model\n" + rest)) != base);
  CHECK(key(folder, task("  a:\n    run: prog  ${{ in.obs }}  ${{dir}}/model\n" + rest)) == base);
  CHECK(key(folder, task(head + rest + "    env: {A: b}\n")) != base);
  for (const char* file : {"obs", "model", "lib"}) {
    folder.write(file, "2");
    CHECK_MESSAGE(key(folder, task(head + rest)) != base, file);
    folder.write(file, "1");
  }
  CHECK(key(folder, task(head + rest)) == base);
}

TEST_CASE("key: does not change with resources, retry, comments, the folder or other tasks") {
  SpecFolder folder;
  const std::string body =
      "  a:\n    run: prog ${{ dir }} ${{ out.x }}\n    outputs: {x: {file: x}}\n";
  const auto base = key(folder, task(body));
  CHECK(key(folder, task(body + "    resources: {cpus: 2}\n    retry: {exit: {max: 1}}\n"
                                "    timeout: 1h\n    priority: 2\n    # a comment\n"
                                "  b: {run: other}\n")) == base);
  SpecFolder elsewhere;
  CHECK(key(elsewhere, task(body)) == base);
}

TEST_CASE("key: only the params and items that the command names are in it") {
  SpecFolder folder;
  const std::string params =
      "sluice: 1\nparams: {p: {type: int, default: 1}, q: {type: int, default: 1}}\ntasks:\n";
  const std::string run = params + "  a: {run: 'prog ${{ params.p }}'}\n";
  CHECK(key(folder, run, "a", "", {{"q", "2"}}) == key(folder, run));
  CHECK(key(folder, run, "a", "", {{"p", "2"}}) != key(folder, run));
  const std::string script = params + "  a: {sh: 'prog $PARAM_p'}\n";
  CHECK(key(folder, script, "a", "", {{"q", "2"}}) == key(folder, script));
  CHECK(key(folder, script, "a", "", {{"p", "2"}}) != key(folder, script));
  const std::string items =
      task("  a:\n    foreach: {i: [1, 2], j: [1, 2]}\n    run: prog ${{ item.i }}\n");
  CHECK(key(folder, items, "a", "i=1,j=1") == key(folder, items, "a", "i=1,j=2"));
  CHECK(key(folder, items, "a", "i=1,j=1") != key(folder, items, "a", "i=2,j=1"));
}

TEST_CASE("key: text that moves between words or into another kind of piece is another key") {
  SpecFolder folder;
  CHECK(key(folder, task("  a: {run: prog ab c}\n")) !=
        key(folder, task("  a: {run: prog a bc}\n")));
  CHECK(key(folder, task("  a: {run: prog x}\n")) != key(folder, task("  a: {sh: prog x}\n")));
  const std::string named = "  a:\n    run: prog ${{ out.x }}\n    outputs: {x: {file: x}}\n";
  const std::string text = "  a:\n    run: prog x\n    outputs: {x: {file: x}}\n";
  CHECK(key(folder, task(named)) != key(folder, task(text)));
}

TEST_CASE("render: how an attempt starts comes from its task") {
  SpecFolder folder;
  folder.write("obs", "1");
  const auto p = folder.read(R"(sluice: 1
keep_env: [SLURM_JOB_ID]
params: {level: {type: int, default: 3}}
tasks:
  a:
    run: prog
    setup: export A=$PARAM_level
    cwd: pipeline
    stdin: obs
    stdout: x
    keep_env: ["PMI_*"]
    inputs: {other: {file: obs}, obs: {file: obs, as: renamed}}
    outputs: {y: {file: y}, x: {file: x}}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  Values values;
  const auto spec = p->render(InstanceId(0), values.lookup());
  REQUIRE(spec);
  CHECK(spec->setup == "export A=$PARAM_level");
  CHECK(value_of(*spec, "PARAM_level") == "3");
  CHECK(spec->in_pipeline_folder);
  CHECK(spec->stdin_input == 1);
  CHECK(spec->stdout_output == 1);
  CHECK(spec->keep_environment == Texts{"SLURM_JOB_ID", "PMI_*"});
  CHECK(spec->inputs[0].placed_as.empty());
  CHECK(spec->inputs[1].placed_as == "renamed");
}

TEST_CASE("key: changes with setup, stdin, stdout, cwd and as, not with keep_env") {
  SpecFolder folder;
  folder.write("obs", "1");
  const std::string body =
      "  a:\n    run: prog\n    outputs: {x: {file: x}}\n    inputs: {obs: {file: obs}}\n";
  const auto base = key(folder, task(body));
  for (const char* more : {"setup: export A=1", "stdin: obs", "stdout: x", "cwd: pipeline"}) {
    CHECK_MESSAGE(key(folder, task(body + "    " + more + "\n")) != base, more);
  }
  CHECK(key(folder, task(body + "    setup: export A=1\n")) !=
        key(folder, task(body + "    setup: export A=2\n")));
  CHECK(key(folder, task("  a:\n    run: prog\n    outputs: {x: {file: x}}\n"
                         "    inputs: {obs: {file: obs, as: y}}\n")) != base);
  CHECK(key(folder, task(body + "    keep_env: [SLURM_JOB_ID]\n")) == base);
}

TEST_CASE("key: defaults count as if each task had them") {
  SpecFolder folder;
  const std::string own = "  a:\n    run: prog\n    env: {A: '1', B: '2'}\n    setup: true\n";
  const std::string shared = "  a:\n    run: prog\n    env: {A: '1'}\n";
  CHECK(key(folder, "sluice: 1\ndefaults: {env: {B: '2', A: '0'}, setup: 'true'}\ntasks:\n" +
                        shared) == key(folder, task(own)));
}

TEST_CASE("key: what is at a path param is not in it, the path as typed is") {
  SpecFolder folder;
  folder.write("one", "1");
  folder.write("two", "1");
  const std::string text =
      "sluice: 1\nparams: {p: {type: path, default: one, expect: file}}\ntasks:\n"
      "  a: {sh: 'prog $PARAM_p'}\n";
  const auto base = key(folder, text);
  folder.write("one", "2");
  CHECK(key(folder, text) == base);
  CHECK(key(folder, text, "a", "", {{"p", "two"}}) != base);
}
