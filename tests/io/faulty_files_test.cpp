// Every call goes wrong once: for each sequence of calls below, each of its system calls in turn
// fails with each errno that matters, is interrupted, or does half. The right outcome: interrupted
// and halved calls are not noticed; a failure is an Error that names a path and has the errno as
// its code, or leaves everything done; what was there before is still whole, nothing half-made is
// taken for the thing itself; and the same call again succeeds.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <set>

#include "io/files.h"
#include "io/journal.h"
#include "io/lease.h"
#include "io/log_pack.h"
#include "io/manifest.h"
#include "io/run_ledger.h"
#include "io/sources.h"
#include "io/store.h"
#include "io/tier.h"
#include "tests/support/faulty_system.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using scheduler::AttemptId;
using scheduler::ObjectId;
using sluice::test::Fault;
using sluice::test::FaultySystem;
using sluice::test::for_each_call;
using sluice::test::read_text;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

// One thing to do in a folder, and how to tell whether it was done.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual Status act() = 0;
  virtual void check_done() = 0;
  virtual void check_failed() {}  // nothing half-made is to be seen
};
using Make = std::function<std::unique_ptr<Sequence>(const fs::path&)>;

// `now`: an Error. The errno is its code, and it says which file.
void check_error(const Status& now, const Fault& fault, const fs::path& folder) {
  CHECK_MESSAGE(now.error().code == fault.error, now.error().message);
  CHECK_MESSAGE(now.error().message.find(folder.string()) != std::string::npos,
                now.error().message);
  CHECK_MESSAGE(now.error().message.find(std::strerror(fault.error)) != std::string::npos,
                now.error().message);
}

bool try_fault(const Make& make, const Fault& fault) {
  const TemporaryFolder folder;
  const std::unique_ptr<Sequence> sequence = make(folder.path());
  FaultySystem system(folder.path());
  system.arm(fault);
  const Status now = sequence->act();
  system.disarm();
  INFO("call " << fault.nth << ", errno " << fault.error << ": " << system.hit_call());
  if (!system.hit()) {
    REQUIRE_MESSAGE(now.ok(), now.error().message);
    sequence->check_done();
    return false;
  }
  if (!now) {
    CHECK_MESSAGE(fault.kind == Fault::Kind::kError, now.error().message);
    if (fault.kind == Fault::Kind::kError) check_error(now, fault, folder.path());
    sequence->check_failed();
    const Status again = sequence->act();
    REQUIRE_MESSAGE(again.ok(), again.error().message);
  }
  sequence->check_done();
  return true;
}

void check_every_call(const Make& make) {
  for (const int error : {EIO, ENOSPC}) {
    const uint64_t calls = for_each_call(
        {Fault::Kind::kError, error}, [&](const Fault& fault) { return try_fault(make, fault); });
    if (error == EIO) CHECK(calls > 0);
  }
  for (const auto kind : {Fault::Kind::kInterrupted, Fault::Kind::kShort}) {
    (void)for_each_call({kind}, [&](const Fault& fault) { return try_fault(make, fault); });
  }
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// -- files

struct Replace final : Sequence {
  explicit Replace(fs::path at) : folder(std::move(at)) { write_text(folder / "a", "old text"); }
  Status act() override { return io::real_files().replace(folder / "a", "a new text"); }
  void check_failed() override {
    const std::string text = read_text(folder / "a");
    CHECK((text == "old text" || text == "a new text"));
    CHECK(names_in(folder) == std::set<std::string>{"a"});
  }
  void check_done() override {
    CHECK(read_text(folder / "a") == "a new text");
    CHECK(names_in(folder) == std::set<std::string>{"a"});
  }
  fs::path folder;
};

// Whether it is done is asked of the names: a repeated rename finds its source gone.
struct Rename final : Sequence {
  Rename(fs::path at, bool over_a_folder) : folder(std::move(at)), over(over_a_folder) {
    write_text(folder / "tmp/tree/sub/file", "new");
    if (over) write_text(folder / "place/tree/sub/file", "old");
  }
  Status act() override {
    if (!fs::exists(folder / "tmp/tree")) return Done{};
    return io::real_files().rename(folder / "tmp/tree", folder / "place/tree");
  }
  void check_failed() override {
    // The new tree is whole, in one of its two places.
    const bool moved = !fs::exists(folder / "tmp/tree");
    CHECK(read_text(folder / (moved ? "place/tree/sub/file" : "tmp/tree/sub/file")) == "new");
    if (!moved && over) CHECK(read_text(folder / "place/tree/sub/file") == "old");
  }
  void check_done() override {
    CHECK(read_text(folder / "place/tree/sub/file") == "new");
    CHECK(names_in(folder / "place") == std::set<std::string>{"tree"});
    CHECK_FALSE(fs::exists(folder / "tmp/tree"));  // of what was there before, pieces may be
  }
  fs::path folder;
  bool over;
};

// -- journal

io::record::DoneRecord done_record(const std::string& item) {
  io::record::DoneRecord record;
  record.task = "t";
  record.item = item;
  record.attempt = AttemptId::make(1, 1);
  record.key = {1, 2};
  return record;
}

struct Journal final : Sequence {
  explicit Journal(fs::path at) : folder(std::move(at)) {
    auto made = io::JournalWriter::create(io::real_files(), folder / "journal.1.jsonl");
    writer = std::make_unique<io::JournalWriter>(std::move(made.value()));
    io::record::Run run;
    run.run_uuid = "u";
    REQUIRE(writer->append(run));
    REQUIRE(writer->append(done_record("before")));
    REQUIRE(writer->sync());
  }
  Status act() override {
    if (failed_sync) return Done{};  // the writer is of no use any more: that is its promise
    if (!appended) {
      const Status status = writer->append(done_record("now"));
      if (!status) return status;
      appended = true;
    }
    const Status synced = writer->sync();
    synced_once = synced_once || synced.ok();
    failed_sync = !synced && !writer->sync();
    return synced;
  }
  void check_failed() override { check_whole(); }
  void check_done() override {
    check_whole();
    const auto state = io::read_journal(folder);
    CHECK(state->instances.contains({"t", "now"}));
    if (synced_once) CHECK(state->instances.at({"t", "now"}).done_synced);
  }
  void check_whole() const {
    const auto state = io::read_journal(folder);
    REQUIRE(state);
    CHECK(state->instances.at({"t", "before"}).done_synced);
    CHECK(state->instances.contains({"t", "now"}) == appended);
  }
  fs::path folder;
  std::unique_ptr<io::JournalWriter> writer;
  bool appended = false, synced_once = false, failed_sync = false;
};

struct JournalCreate final : Sequence {
  explicit JournalCreate(fs::path at) : folder(std::move(at)) {}
  Status act() override {
    if (fs::exists(folder / "journal.1.jsonl")) fs::remove(folder / "journal.1.jsonl");
    const auto made = io::JournalWriter::create(io::real_files(), folder / "journal.1.jsonl");
    return made ? Status(Done{}) : Status(made.error());
  }
  void check_done() override { CHECK(fs::exists(folder / "journal.1.jsonl")); }
  fs::path folder;
};

// Readers must not take what they cannot read for what is not there.
struct ReadRun final : Sequence {
  enum class What { kJournal, kLedger, kLogs };
  ReadRun(fs::path at, What which) : folder(std::move(at)), what(which) {
    Journal(folder).act().value();
    auto logs = std::move(io::LogPackWriter::create(folder / "logs", 1, 0).value());
    io::LogEntry entry;
    entry.task = "t";
    REQUIRE(logs.append(entry, {"out", {}, 3, 0}, {}));
  }
  Status act() override {
    if (what == What::kJournal) {
      const auto state = io::read_journal(folder);
      if (!state) return state.error();
      found = state->instances.size() == 2 && state->messages.empty();
    } else if (what == What::kLedger) {
      const auto ledger = io::read_ledger(folder, {}, io::LedgerDetail::kAll);
      if (!ledger) return ledger.error();
      found = ledger->instances.size() == 2;
    } else {
      const auto entries = io::read_log_index(folder / "logs");
      if (!entries) return entries.error();
      if (entries->empty()) return Done{};  // found stays false
      const auto text = io::read_log(entries->front(), false);
      if (!text) return text.error();
      found = *text == "out";
    }
    return Done{};
  }
  void check_done() override { CHECK(found); }
  fs::path folder;
  What what;
  bool found = false;
};

// -- lease

struct Lease final : Sequence {
  enum class What { kTake, kBeat, kRelease };
  Lease(fs::path at, What which) : folder(std::move(at)), what(which) {
    if (what == What::kTake) return;
    lease = std::make_unique<io::Lease>(std::move(io::Lease::take(folder, {}).value()));
  }
  Status act() override {
    if (what == What::kBeat) return lease->beat();
    if (what == What::kRelease) return lease->release();
    auto taken = io::Lease::take(folder, {});
    // What failed half-way is this very process's: it lives, so it seems to be in use.
    if (!taken && taken.error().code == EBUSY) taken = take_after_death();
    if (!taken) return taken.error();
    lease = std::make_unique<io::Lease>(std::move(*taken));
    return Done{};
  }
  [[nodiscard]] Expected<io::Lease> take_after_death() const {
    CHECK_FALSE(names_in(folder).empty());
    for (const std::string& name : names_in(folder)) fs::remove(folder / name);
    return io::Lease::take(folder, {});
  }
  void check_done() override {
    REQUIRE(lease);
    const auto view = io::view_lease(folder);
    REQUIRE(view);
    CHECK(view->owner.epoch == lease->epoch());
    CHECK(view->owner.released == (what == What::kRelease));
    if (what == What::kBeat) CHECK(view->owner.counter > 0);
    if (what != What::kRelease) CHECK(view->may_run());
    // What is private to a taker is gone.
    for (const std::string& name : names_in(folder)) {
      CHECK_MESSAGE(name.find("lease.new.") == std::string::npos, name);
      CHECK_MESSAGE(name.find(".tmp.") == std::string::npos, name);
    }
  }
  fs::path folder;
  What what;
  std::unique_ptr<io::Lease> lease;
};

// -- logs

struct Logs final : Sequence {
  explicit Logs(fs::path at) : folder(std::move(at)) {
    write_text(folder / "stream", std::string(1000, 's'));
    auto made = io::LogPackWriter::create(folder / "logs", 1, 0);
    writer = std::make_unique<io::LogPackWriter>(std::move(made.value()));
    append("before").value();
  }
  [[nodiscard]] Status append(const std::string& task) {
    io::LogEntry entry;
    entry.task = task;
    entry.attempt = AttemptId::make(1, ++number);
    return writer->append(entry, {task + " out", {}, 1, 0}, {"", folder / "stream", 1000, 0});
  }
  Status act() override { return append("now"); }
  void check_failed() override { check({"before"}); }
  void check_done() override {
    check({"before", "now"});
    REQUIRE(append("after"));
    check({"before", "now", "after"});
  }
  void check(const std::vector<std::string>& tasks) const {
    const auto entries = io::read_log_index(folder / "logs");
    REQUIRE(entries);
    REQUIRE(entries->size() == tasks.size());
    for (size_t i = 0; i < tasks.size(); ++i) {
      CHECK((*entries)[i].task == tasks[i]);
      CHECK(*io::read_log((*entries)[i], false) == tasks[i] + " out");
      CHECK(*io::read_log((*entries)[i], true) == std::string(1000, 's'));
    }
  }
  fs::path folder;
  std::unique_ptr<io::LogPackWriter> writer;
  uint32_t number = 0;
};

// -- store

constexpr AttemptId kAttempt = AttemptId::make(1, 1);
constexpr ObjectId kObject(5);

struct StoreSequence : Sequence {
  StoreSequence(fs::path at, bool directory)
      : folder(std::move(at)),
        place{folder / "memory", folder / "node.disk"},
        store(std::move(io::Store::create(place, 1 << 20).value())),
        is_directory(directory) {
    io::AttemptOutput output;
    output.name = "x";
    output.file_name = "x";
    output.object = kObject;
    if (directory) output.kind = scheduler::OutputKind::kDir;
    spec.outputs = {output};
    spec.label = "t";
    spec.words = {{{io::Piece::Kind::kText, 0, "/bin/true"}}};
  }
  void stage() { REQUIRE(store.stage(kAttempt, spec, {})); }
  void make_output() {
    const fs::path path = store.output_path(kAttempt, spec, 0);
    write_text(is_directory ? path / "sub/file" : path, text);
  }
  void make_object() {
    stage();
    make_output();
    REQUIRE(store.seal(kAttempt, spec, 0));
  }
  [[nodiscard]] std::string read(const fs::path& object) const {
    return read_text(is_directory ? object / "sub/file" : object);
  }
  void check_sealed() {
    REQUIRE(store.holds(kObject));
    CHECK(read(store.object_path(kObject)) == text);
    CHECK_MESSAGE(names_in(store.object_path(kObject).parent_path()) ==
                      std::set<std::string>{std::to_string(kObject.value)},
                  "nothing temporary is left");
    struct stat info {};
    REQUIRE(::lstat(store.object_path(kObject).c_str(), &info) == 0);
    CHECK((info.st_mode & 0222U) == 0);
  }

  fs::path folder;
  io::StorePlace place;
  io::Store store;
  io::AttemptSpec spec;
  bool is_directory;
  std::string text = std::string(5000, 'x');
};

struct Seal final : StoreSequence {
  Seal(fs::path at, bool directory, bool second_name) : StoreSequence(std::move(at), directory) {
    stage();
    make_output();
    if (second_name) {
      const fs::path path = store.output_path(kAttempt, spec, 0);
      const fs::path file = directory ? path / "sub/file" : path;
      fs::create_hard_link(file, path.parent_path() / "other");
    }
  }
  Status act() override {
    const auto sealed = store.seal(kAttempt, spec, 0);
    return sealed ? Status(Done{}) : Status(sealed.error());
  }
  // An attempt whose sealing failed is run again: its output is written anew.
  void check_failed() override {
    CHECK_FALSE(store.holds(kObject));
    REQUIRE(store.clean(kAttempt));
    stage();
    make_output();
  }
  void check_done() override { check_sealed(); }
};

struct Stage final : StoreSequence {
  explicit Stage(fs::path at) : StoreSequence(std::move(at), false) {
    write_text(folder / "input", "in");
    io::InputSpec input;
    input.name = "i";
    io::InputFile file;
    file.file_name = "input";
    file.source_path = folder / "input";
    input.files = {file};
    spec.inputs = {input};
    spec.words.clear();
    spec.script = "true\n";
    spec.setup = "true\n";
  }
  Status act() override {
    auto made = store.stage(kAttempt, spec, {folder / "input"});
    if (!made) return made.error();
    staged = std::move(*made);
    return Done{};
  }
  void check_failed() override { REQUIRE(store.clean(kAttempt)); }
  void check_done() override {
    CHECK(read_text(fs::path(staged.working_directory) / "in/i/input") == "in");
    CHECK(read_text(staged.setup_state_path) == "not done\n");
    CHECK(staged.argv.size() > 4);
  }
  io::StagedAttempt staged;
};

struct Save final : StoreSequence {
  Save(fs::path at, bool directory) : StoreSequence(std::move(at), directory) { make_object(); }
  Status act() override { return store.save(kObject, folder / "run/results/.tmp/1"); }
  void check_failed() override { CHECK_FALSE(fs::exists(folder / "run/results/.tmp/1")); }
  void check_done() override { CHECK(read(folder / "run/results/.tmp/1") == text); }
};

struct Receive final : StoreSequence {
  Receive(fs::path at, bool directory)
      : StoreSequence(std::move(at), directory),
        other(std::move(io::Store::create({folder / "m2", folder / "n2.disk"}, 1 << 20).value())) {
    make_object();
  }
  Status act() override {
    other.abandon_receive(kObject);
    io::ObjectForm form;
    for (int64_t at = 0; form.total_bytes < 0 || at < form.total_bytes; at += 1000) {
      const bool first = form.total_bytes < 0;
      const auto bytes = store.read_piece(kObject, at, 1000, form);
      if (!bytes) return bytes.error();
      Status status = first ? other.begin_receive(kObject, form) : Status(Done{});
      if (status) status = other.write_piece(kObject, at, *bytes);
      if (!status) return status;
    }
    return other.finish_receive(kObject);
  }
  void check_failed() override { CHECK_FALSE(other.holds(kObject)); }
  void check_done() override {
    std::swap(store, other);
    check_sealed();
    std::swap(store, other);
  }
  io::Store other;
};

struct LinkFromPeer final : StoreSequence {
  LinkFromPeer(fs::path at, bool directory)
      : StoreSequence(std::move(at), directory),
        other(std::move(io::Store::create({folder / "m2", folder / "n2.disk"}, 1 << 20).value())) {
    make_object();
  }
  Status act() override { return other.link_from(kObject, place.memory); }
  void check_failed() override { CHECK_FALSE(other.holds(kObject)); }
  void check_done() override {
    std::swap(store, other);
    check_sealed();
    std::swap(store, other);
  }
  io::Store other;
};

struct Remove final : StoreSequence {
  Remove(fs::path at, bool directory) : StoreSequence(std::move(at), directory) { make_object(); }
  Status act() override {
    const Status cleaned = store.clean(kAttempt);
    const Status removed = store.remove(kObject);
    return cleaned ? removed : cleaned;
  }
  void check_done() override { CHECK_FALSE(store.holds(kObject)); }
};

template <class T, class... Arguments>
Make make(Arguments... arguments) {
  return [=](const fs::path& folder) { return std::make_unique<T>(folder, arguments...); };
}

}  // namespace

TEST_CASE("faulty files: whichever call fails, a file is replaced or moved as a whole or not") {
  check_every_call(make<Replace>());
  check_every_call(make<Rename>(false));
  check_every_call(make<Rename>(true));
}

TEST_CASE("faulty files: whichever call fails, the journal's records are whole") {
  check_every_call(make<JournalCreate>());
  check_every_call(make<Journal>());
}

TEST_CASE("faulty files: what cannot be read is never taken for what is not there") {
  check_every_call(make<ReadRun>(ReadRun::What::kJournal));
  check_every_call(make<ReadRun>(ReadRun::What::kLedger));
  check_every_call(make<ReadRun>(ReadRun::What::kLogs));
}

TEST_CASE("faulty files: whichever call fails, a lease can be taken, kept and given up again") {
  check_every_call(make<Lease>(Lease::What::kTake));
  check_every_call(make<Lease>(Lease::What::kBeat));
  check_every_call(make<Lease>(Lease::What::kRelease));
}

TEST_CASE("faulty files: whichever call fails, a log pack has whole entries and takes more") {
  check_every_call(make<Logs>());
}

TEST_CASE("faulty files: whichever call fails, an attempt is staged again after its cleaning") {
  check_every_call(make<Stage>());
}

TEST_CASE("faulty files: whichever call fails, an output is sealed as a whole or not at all") {
  check_every_call(make<Seal>(false, false));
  check_every_call(make<Seal>(false, true));
  check_every_call(make<Seal>(true, false));
  check_every_call(make<Seal>(true, true));
}

TEST_CASE("faulty files: whichever call fails, an object is saved as a whole or not at all") {
  check_every_call(make<Save>(false));
  check_every_call(make<Save>(true));
}

TEST_CASE("faulty files: whichever call fails, an object comes from a peer or is not held") {
  check_every_call(make<Receive>(false));
  check_every_call(make<Receive>(true));
  check_every_call(make<LinkFromPeer>(false));
  check_every_call(make<LinkFromPeer>(true));
}

TEST_CASE("faulty files: whichever call fails, an object is removed by the next call") {
  check_every_call(make<Remove>(false));
  check_every_call(make<Remove>(true));
}
