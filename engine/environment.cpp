#include "engine/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "engine/launcher.h"

namespace sluice::engine {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kLauncherPrefixes = {
    "OMPI_"sv,   "PMIX_"sv,           "PMI_"sv,        "PMI2_"sv,           "SLURM_"sv,
    "SLURMD_"sv, "SRUN_"sv,           "ORTE_"sv,       "OPAL_"sv,           "PRTE_"sv,
    "HYDRA"sv,   "HYDI_"sv,           "MPIEXEC_"sv,    "PALS_"sv,           "ALPS_"sv,
    "JSM_"sv,    "MV2_COMM_WORLD_"sv, "I_MPI_HYDRA"sv, "MPI_LOCALRANKID"sv, "MPI_LOCALNRANKS"sv};
// Not a word about the job: it only permits what root asked for.
constexpr std::string_view kKeptPrefix = "OMPI_ALLOW_RUN_AS_ROOT";
constexpr std::array kBatchIds = {"SLURM_JOB_ID"sv, "PBS_JOBID"sv, "LSB_JOBID"sv};

}  // namespace

bool is_launcher_variable(const std::string& name) {
  if (name.starts_with(kKeptPrefix)) return false;
  return std::any_of(kLauncherPrefixes.begin(), kLauncherPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Environment Environment::inherited() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    result.entries_.emplace_back(*entry);
  }
  return result;
}

Environment Environment::cleaned() {
  const Environment all = inherited();
  Environment result;
  for (const std::string& entry : all.entries_) {
    if (!is_launcher_variable(entry.substr(0, entry.find('=')))) result.entries_.push_back(entry);
  }
  for (const std::string_view name : kBatchIds) {
    if (const std::string id = all.get(name); !id.empty()) {
      result.set("SLUICE_BATCH_ID", id);
      break;
    }
  }
  result.unset("OLDPWD");
  return result;
}

std::vector<std::pair<std::string, std::string>> thread_variables(int32_t cpus) {
  const std::string count = std::to_string(cpus);
  std::vector<std::pair<std::string, std::string>> out;
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                           "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"}) {
    out.emplace_back(name, count);
  }
  return out;
}

Environment Environment::removed() {
  Environment result = inherited();
  std::erase_if(result.entries_, [](const std::string& entry) {
    return !is_launcher_variable(entry.substr(0, entry.find('=')));
  });
  return result;
}

void Environment::take(const Environment& from, std::span<const std::string> patterns) {
  const auto means = [](std::string_view pattern, std::string_view name) {
    if (!pattern.ends_with('*')) return pattern == name;
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
  };
  for (const std::string_view entry : from.entries_) {
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return means(pattern, name); })) {
      set(name, entry.substr(equals + 1));
    }
  }
}

size_t Environment::find(std::string_view name) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::string_view entry = entries_[i];
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return i;
    }
  }
  return entries_.size();
}

void Environment::set(std::string_view name, std::string_view value) {
  std::string entry;
  entry.reserve(name.size() + 1 + value.size());
  entry.append(name).append(1, '=').append(value);
  const size_t i = find(name);
  if (i == entries_.size()) {
    entries_.push_back(std::move(entry));
  } else {
    entries_[i] = std::move(entry);
  }
}

void Environment::unset(std::string_view name) {
  const size_t i = find(name);
  if (i < entries_.size()) entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
}

std::string Environment::get(std::string_view name) const {
  const size_t i = find(name);
  return i == entries_.size() ? "" : entries_[i].substr(name.size() + 1);
}

std::vector<char*> Environment::pointers() const {
  std::vector<char*> result;
  result.reserve(entries_.size() + 1);
  // execve's parameter is not const for historical reasons; it does not write.
  for (const std::string& entry : entries_) result.push_back(const_cast<char*>(entry.c_str()));
  result.push_back(nullptr);
  return result;
}

}  // namespace sluice::engine
