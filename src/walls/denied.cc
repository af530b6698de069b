// SPDX-License-Identifier: Apache-2.0
#include "walls/denied.h"

#include <iterator>
#include <utility>
#include <vector>

namespace soma::walls {

bool Denied::SameRefusal(const Denied& other) const {
  return errno_value == other.errno_value && object == other.object && asked == other.asked &&
         tried == other.tried && command == other.command && rule == other.rule;
}

void DeniedQueue::Push(Denied event) {
  if (!entries_.empty() && entries_.back().SameRefusal(event)) {
    entries_.back().times += event.times;
    return;
  }
  if (entries_.size() >= entries_max_) {
    dropped_ += event.times;
    return;
  }
  entries_.push_back(std::move(event));
}

std::vector<Denied> DeniedQueue::Drain() {
  std::vector<Denied> taken(std::make_move_iterator(entries_.begin()),
                            std::make_move_iterator(entries_.end()));
  entries_.clear();
  return taken;
}

}  // namespace soma::walls
