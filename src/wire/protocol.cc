// SPDX-License-Identifier: Apache-2.0
#include "wire/protocol.h"

#include <cstddef>
#include <variant>

#include "wire/link.h"
#include "wire/message.h"
#include "wire/reply.h"
#include "wire/request.h"

namespace soma::wire {
namespace {

// The index of T in Message, as a constant for switch.
template <typename T, std::size_t kIndex = 0>
constexpr std::size_t IndexOf() {
  if constexpr (std::is_same_v<std::variant_alternative_t<kIndex, Message>, T>) {
    return kIndex;
  } else {
    return IndexOf<T, kIndex + 1>();
  }
}

template <typename... Types>
bool IsOneOf(const Message& message) {
  return (std::holds_alternative<Types>(message) || ...);
}

bool IsDataOf(const Message& message, DataKind kind) {
  const auto* data = std::get_if<Data>(&message);
  return data != nullptr && data->kind == kind;
}

bool IsOutput(const Message& message) {
  return IsDataOf(message, DataKind::kStdout) || IsDataOf(message, DataKind::kStderr) ||
         IsDataOf(message, DataKind::kPty);
}

bool IsDuplexMessage(const Message& message) {
  return IsOneOf<End>(message) || IsDataOf(message, DataKind::kBytes);
}

}  // namespace

bool IsRequestOf(Role role, const Message& message) {
  if (role == Role::kGuest) return IsOneOf<Open, Datagram>(message);
  return message.index() < IndexOf<Open>();
}

bool IsDuplex(RequestKind request) {
  return request == IndexOf<Dial>() || request == IndexOf<Open>();
}

bool IsTerminal(const Message& message) {
  return IsOneOf<Ok, Failed, Exit, Entry, Stats, DatagramReply, Reset>(message);
}

bool MayReply(RequestKind request, const Message& message) {
  if (IsOneOf<Failed, Ack, Reset>(message)) return true;
  switch (request) {
    case IndexOf<Start>():
    case IndexOf<Attach>():
      return IsOneOf<Started, Cut, Exit>(message) || IsOutput(message);
    case IndexOf<ListTasks>():
    case IndexOf<ListDir>():
      return IsOneOf<Ok>(message) || IsDataOf(message, DataKind::kRecords);
    case IndexOf<Stat>():
    case IndexOf<MakeDir>():
    case IndexOf<Move>():
      return IsOneOf<Entry>(message);
    case IndexOf<ReadFile>():
      return IsOneOf<Opened, Ok>(message) || IsDataOf(message, DataKind::kBytes);
    case IndexOf<WriteFile>():
      return IsOneOf<Opened, Entry>(message);
    case IndexOf<Watch>():
      return IsOneOf<Opened>(message) || IsDataOf(message, DataKind::kRecords);
    case IndexOf<GetStats>():
      return IsOneOf<Stats>(message);
    case IndexOf<Dial>():
    case IndexOf<Open>():
      return IsOneOf<Opened>(message) || IsDuplexMessage(message);
    case IndexOf<Datagram>():
      return IsOneOf<DatagramReply>(message);
    default:  // Init, Signal, Resize, Stdin, CloseStdin, Remove
      return IsOneOf<Ok>(message);
  }
}

bool MayFollow(RequestKind request, const Message& message) {
  if (IsOneOf<Ack, Reset>(message)) return true;
  return (IsDuplex(request) || request == IndexOf<WriteFile>()) && IsDuplexMessage(message);
}

}  // namespace soma::wire
