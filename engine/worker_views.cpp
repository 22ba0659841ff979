// Of a worker: inputs that are made of HDF5 files for an attempt, before it is staged. The lists of
// what they are made of are written on the I/O thread, `sluice-h5` makes them one after another,
// then the attempt is staged with them in place.
#include <cerrno>
#include <utility>

#include "engine/worker_rank.h"
#include "io/fault.h"

namespace sluice::engine {

using scheduler::AttemptId;
using scheduler::Cause;
using scheduler::ObjectId;
namespace input = scheduler::input;

void WorkerRank::make_views(AttemptId id) {
  io_.post([this, store = store_, id, attempt = attempts_.at(id),
            paths = known_paths(attempts_.at(id)->start.spec)]() mutable -> IoThread::Completion {
    const io::AttemptSpec& spec = attempt->start.spec;
    add_store_paths(*store, spec, paths);
    // Also looks whether what the store holds is as it was sealed.
    std::vector<ObjectId> lost = attempt->watch.begin(*store, spec, paths);
    if (!lost.empty()) return [this, lost = std::move(lost)] { lose(lost); };
    const auto folder = store->make_view_folder(id, spec, view_bytes_max(spec, paths));
    auto views = folder ? prepare_views(spec, paths, *folder)
                        : Expected<std::vector<ViewRequest>>(folder.error());
    if (!views) {
      return [this, id, error = views.error()] {
        const bool full = error.code == ENOSPC || error.code == EDQUOT;
        feed_later(input::StageFailed{id, full ? Cause::kDisk : Cause::kStaging, error.message});
      };
    }
    return [this, id, made = std::move(*views)] {
      const auto found = attempts_.find(id);
      if (found == attempts_.end()) return;  // given back meanwhile
      found->second->views = made;
      ask_for_views(id);
    };
  });
}

void WorkerRank::ask_for_views(AttemptId id) {
  Attempt& attempt = *attempts_.at(id);
  attempt.views_open = attempt.views.size();
  for (size_t i = 0; i < attempt.views.size(); ++i) {
    view_ids_[checker_.request(now_, attempt.views[i].request)] = {id, i};
  }
}

void WorkerRank::on_view(const io::CheckReply& reply) {
  const auto asked = view_ids_.find(reply.id);
  if (asked == view_ids_.end()) return;
  const auto [id, view] = asked->second;
  view_ids_.erase(asked);
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return;
  Attempt& attempt = *found->second;
  SLUICE_FAULT_POINT("view.made");
  if (!reply.ok && attempt.check_error.empty()) {
    attempt.check_error = view_error(attempt.start.spec, attempt.views[view], reply.error);
  }
  if (--attempt.views_open > 0) return;
  if (!attempt.check_error.empty()) {
    feed(now_, input::StageFailed{id, Cause::kStaging, attempt.check_error});
    return;
  }
  std::vector<std::string> paths = known_paths(attempt.start.spec);
  use_views(attempt.views, attempt.start.spec, paths);
  stage_files(id, std::move(paths));
}

}  // namespace sluice::engine
