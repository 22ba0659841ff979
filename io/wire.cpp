#include "io/wire.h"

#include <tuple>

#include "io/codec_scheduler.h"

namespace sluice::io {

namespace s = scheduler;

// -- events and decisions: members in the order of the struct --

namespace e = s::event;
template <>
inline constexpr auto kMembers<e::WorkerJoined> =
    std::tuple{&e::WorkerJoined::worker, &e::WorkerJoined::node, &e::WorkerJoined::resources};
template <>
inline constexpr auto kMembers<e::WorkerLost> = std::tuple{&e::WorkerLost::worker};
template <>
inline constexpr auto kMembers<e::Restored> = std::tuple{
    &e::Restored::instance, &e::Restored::key, &e::Restored::outputs, &e::Restored::durable};
template <>
inline constexpr auto kMembers<e::Selected> = std::tuple{&e::Selected::instances};
template <>
inline constexpr auto kMembers<e::Begin> = std::tuple{};
template <>
inline constexpr auto kMembers<e::Tick> = std::tuple{};
template <>
inline constexpr auto kMembers<e::StopRequested> = std::tuple{};
template <>
inline constexpr auto kMembers<e::ObjectCommitted> = std::tuple{&e::ObjectCommitted::object};
template <>
inline constexpr auto kMembers<e::ObjectCommitFailed> =
    std::tuple{&e::ObjectCommitFailed::object, &e::ObjectCommitFailed::reason};
template <>
inline constexpr auto kMembers<e::RecordsSynced> = std::tuple{&e::RecordsSynced::decisions};
template <>
inline constexpr auto kMembers<e::Heartbeat> = std::tuple{&e::Heartbeat::worker};
template <>
inline constexpr auto kMembers<e::AttemptStarted> =
    std::tuple{&e::AttemptStarted::worker, &e::AttemptStarted::attempt};
template <>
inline constexpr auto kMembers<e::AttemptFinished> =
    std::tuple{&e::AttemptFinished::worker, &e::AttemptFinished::attempt,
               &e::AttemptFinished::outputs, &e::AttemptFinished::usage};
template <>
inline constexpr auto kMembers<e::AttemptFailed> = std::tuple{
    &e::AttemptFailed::worker,      &e::AttemptFailed::attempt, &e::AttemptFailed::cause,
    &e::AttemptFailed::exit_code,   &e::AttemptFailed::signal,  &e::AttemptFailed::detail,
    &e::AttemptFailed::stderr_tail, &e::AttemptFailed::usage};
template <>
inline constexpr auto kMembers<e::AttemptReturned> =
    std::tuple{&e::AttemptReturned::worker, &e::AttemptReturned::attempt,
               &e::AttemptReturned::missing, &e::AttemptReturned::source};
template <>
inline constexpr auto kMembers<e::AttemptStopped> =
    std::tuple{&e::AttemptStopped::worker, &e::AttemptStopped::attempt, &e::AttemptStopped::usage};
template <>
inline constexpr auto kMembers<e::ReplicaAdded> =
    std::tuple{&e::ReplicaAdded::worker, &e::ReplicaAdded::object};
template <>
inline constexpr auto kMembers<e::ReplicaLost> =
    std::tuple{&e::ReplicaLost::worker, &e::ReplicaLost::object};
template <>
inline constexpr auto kMembers<e::ObjectSaved> =
    std::tuple{&e::ObjectSaved::worker, &e::ObjectSaved::object, &e::ObjectSaved::save};
template <>
inline constexpr auto kMembers<e::ObjectSaveFailed> =
    std::tuple{&e::ObjectSaveFailed::worker, &e::ObjectSaveFailed::object,
               &e::ObjectSaveFailed::save, &e::ObjectSaveFailed::reason};

template <>
inline constexpr auto kMembers<s::decision::StartAttempt> =
    std::tuple{&s::decision::StartAttempt::worker,   &s::decision::StartAttempt::attempt,
               &s::decision::StartAttempt::instance, &s::decision::StartAttempt::request,
               &s::decision::StartAttempt::grant,    &s::decision::StartAttempt::inputs,
               &s::decision::StartAttempt::ahead,    &s::decision::StartAttempt::priority};

// -- what a worker needs to know of an attempt --

template <>
inline constexpr uint64_t kEnumLast<Piece::Kind> = static_cast<uint64_t>(Piece::Kind::kOutput);
template <>
inline constexpr uint64_t kEnumLast<ValueType> = static_cast<uint64_t>(ValueType::kList);

template <>
inline constexpr auto kMembers<Piece> = std::tuple{&Piece::kind, &Piece::index, &Piece::text};
template <>
inline constexpr auto kMembers<InputFile> =
    std::tuple{&InputFile::object, &InputFile::source_path, &InputFile::file_name, &InputFile::item,
               &InputFile::value};
template <>
inline constexpr uint64_t kEnumLast<H5View::Gather> = static_cast<uint64_t>(H5View::Gather::kStack);
template <>
inline constexpr auto kMembers<H5View> =
    std::tuple{&H5View::dataset, &H5View::first_row, &H5View::end_row,
               &H5View::shard,   &H5View::shards,    &H5View::gather};
template <>
inline constexpr auto kMembers<InputSpec> = std::tuple{
    &InputSpec::name,  &InputSpec::kind,      &InputSpec::is_list, &InputSpec::value_type,
    &InputSpec::files, &InputSpec::placed_as, &InputSpec::keys,    &InputSpec::view};
template <>
inline constexpr auto kMembers<AttemptOutput> =
    std::tuple{&AttemptOutput::name,      &AttemptOutput::kind,   &AttemptOutput::value_type,
               &AttemptOutput::file_name, &AttemptOutput::object, &AttemptOutput::result};
template <>
inline constexpr auto kMembers<AttemptSpec> = std::tuple{
    &AttemptSpec::label,           &AttemptSpec::words,  &AttemptSpec::script,
    &AttemptSpec::environment,     &AttemptSpec::inputs, &AttemptSpec::outputs,
    &AttemptSpec::pipeline_folder, &AttemptSpec::cpus,   &AttemptSpec::stdin_input,
    &AttemptSpec::stdout_output,   &AttemptSpec::setup,  &AttemptSpec::in_pipeline_folder,
    &AttemptSpec::keep_environment};

// -- messages --

namespace m = message;
template <>
inline constexpr auto kMembers<m::Hello> =
    std::tuple{&m::Hello::host, &m::Hello::node_key, &m::Hello::store_path, &m::Hello::resources,
               &m::Hello::store_budget_bytes};
template <>
inline constexpr auto kMembers<m::Peer> =
    std::tuple{&m::Peer::worker, &m::Peer::node_key, &m::Peer::store_path};
template <>
inline constexpr auto kMembers<m::Welcome> = std::tuple{
    &m::Welcome::run_uuid, &m::Welcome::run_directory, &m::Welcome::epoch, &m::Welcome::peers};
template <>
inline constexpr auto kMembers<m::Start> =
    std::tuple{&m::Start::decision, &m::Start::grace, &m::Start::spec, &m::Start::durable_paths};
template <>
inline constexpr auto kMembers<m::TakeBack> = std::tuple{&m::TakeBack::attempt};
template <>
inline constexpr auto kMembers<m::Stop> = std::tuple{&m::Stop::attempt};
template <>
inline constexpr auto kMembers<m::Save> =
    std::tuple{&m::Save::object, &m::Save::save, &m::Save::temporary_path};
template <>
inline constexpr auto kMembers<m::Drop> = std::tuple{&m::Drop::object};
template <>
inline constexpr auto kMembers<m::PeerLost> = std::tuple{&m::PeerLost::worker};
template <>
inline constexpr auto kMembers<m::Leave> = std::tuple{};
template <>
inline constexpr auto kMembers<m::Report> = std::tuple{&m::Report::event};
template <>
inline constexpr auto kMembers<m::Left> = std::tuple{};
template <>
inline constexpr auto kMembers<m::Ping> = std::tuple{};
template <>
inline constexpr auto kMembers<m::Log> = std::tuple{&m::Log::level, &m::Log::text};
template <>
inline constexpr auto kMembers<m::FetchRequest> =
    std::tuple{&m::FetchRequest::object, &m::FetchRequest::offset, &m::FetchRequest::length};
template <>
inline constexpr auto kMembers<m::FetchChunk> =
    std::tuple{&m::FetchChunk::object,         &m::FetchChunk::offset, &m::FetchChunk::total_bytes,
               &m::FetchChunk::manifest_bytes, &m::FetchChunk::mode,   &m::FetchChunk::data};

template <>
inline constexpr auto kMembers<m::PartRequest> =
    std::tuple{&m::PartRequest::number, &m::PartRequest::object, &m::PartRequest::view};
template <>
inline constexpr auto kMembers<m::PartReady> =
    std::tuple{&m::PartReady::number, &m::PartReady::part, &m::PartReady::error};
template <>
inline constexpr auto kMembers<m::PartDone> = std::tuple{&m::PartDone::part};

namespace {

template <class T>
Bytes encode_value(const T& value) {
  Bytes out;
  Writer(out).value(value);
  return out;
}

template <class T>
Expected<T> decode_value(std::span<const std::byte> bytes, const char* what) {
  Reader reader(bytes);
  T value;
  reader.value(value);
  const Status status = reader.finish(what);
  if (!status) return status.error();
  return value;
}

}  // namespace

Bytes encode(const Message& message) { return encode_value(message); }

Expected<Message> decode(std::span<const std::byte> bytes) {
  return decode_value<Message>(bytes, "a message");
}

Bytes encode_event(const scheduler::Event& event) { return encode_value(event); }

Expected<scheduler::Event> decode_event(std::span<const std::byte> bytes) {
  return decode_value<scheduler::Event>(bytes, "an event");
}

}  // namespace sluice::io
