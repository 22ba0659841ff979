#include "engine/topology.h"
#include "engine/verbs.h"

namespace sluice::engine {

namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

}  // namespace

std::string version_text(const std::string& mpi) {
  return "sluice " SLUICE_VERSION "\n  MPI:      " + mpi + "\n  hwloc:    " + hwloc_version() +
         "\n  HDF5:     " SLUICE_HDF5_VERSION " (in sluice-h5)\n  compiler: " + kCompiler + "\n";
}

}  // namespace sluice::engine
