// SPDX-License-Identifier: Apache-2.0
// Tail: the newest records of a journal, and those to come. For people who watch; the verifier is
// what judges. Takes no lock and skips what it can't read.
#ifndef SOMA_AUDIT_TAIL_H_
#define SOMA_AUDIT_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "audit/event.h"
#include "base/result.h"

namespace soma::audit {

struct TailRecord {
  std::uint64_t segment = 0;
  std::uint64_t number = 0;
  Event event;
  std::string line;  // as it is stored, without its newline
};

class Tail {
 public:
  explicit Tail(std::string directory) : directory_(std::move(directory)) {}

  // The newest `count` records of all segments, oldest first by their time, and sets the place from
  // which Next goes on. Reads only the 16 segments that were written last.
  Result<std::vector<TailRecord>> Last(std::size_t count);

  // What was written since, in the order of time within one call. Empty when nothing was.
  Result<std::vector<TailRecord>> Next();

 private:
  Result<std::vector<TailRecord>> ReadNew(std::uint64_t segment);

  std::string directory_;
  // How far each segment was read, in bytes.
  std::map<std::uint64_t, std::uint64_t> read_;
};

}  // namespace soma::audit

#endif  // SOMA_AUDIT_TAIL_H_
