// SPDX-License-Identifier: Apache-2.0
#include "sandbox/foreground_message.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/error.h"
#include "base/result.h"
#include "sandbox/foreground_end.h"

namespace soma::sandbox {
namespace {

constexpr std::size_t kTextMax = 2048;
constexpr std::uint8_t kSignalLast = 64;  // signal(7)

// One list of fields for each message, walked by a Writer or a Reader.
class Writer {
 public:
  explicit Writer(Bytes& out) : writer_(out) {}
  void Number(std::uint8_t value, std::uint8_t last) { writer_.Put(std::min(value, last)); }
  void Number(std::uint64_t value) { writer_.Put(value); }
  void Flag(bool value) { writer_.Put(static_cast<std::uint8_t>(value)); }
  void Text(const std::string& text) {
    writer_.PutString(std::string_view(text).substr(0, kTextMax));
  }

 private:
  ByteWriter writer_;
};

class Reader {
 public:
  explicit Reader(ByteView in) : reader_(in) {}
  void Number(std::uint8_t& value, std::uint8_t last) {
    value = reader_.Get<std::uint8_t>();
    if (value > last) reader_.MarkInvalid();
  }
  void Number(std::uint64_t& value) { value = reader_.Get<std::uint64_t>(); }
  void Flag(bool& value) {
    std::uint8_t byte = 0;
    Number(byte, 1);
    value = byte == 1;
  }
  void Text(std::string& text) { text = reader_.GetString(kTextMax); }
  bool AtEnd() const { return reader_.AtEnd(); }

 private:
  ByteReader reader_;
};

template <typename Archive, typename Message>
void Fields(Archive& /*archive*/, Message& /*message*/) {}

template <typename Archive>
void Fields(Archive& archive, HostSignal& signal) {
  archive.Number(signal.number, kSignalLast);
}

template <typename Archive>
void Fields(Archive& archive, LauncherSocket& socket) {
  archive.Text(socket.failure);
}

template <typename Archive>
void Fields(Archive& archive, RefusedConnect& refused) {
  archive.Text(refused.what);
  archive.Text(refused.object);
  archive.Text(refused.rule);
  archive.Text(refused.remedy);
  archive.Number(refused.times);
}

template <typename Archive>
void Fields(Archive& archive, RunOver& over) {
  auto exit_code = static_cast<std::uint8_t>(over.end.task.exit_code);
  auto code = static_cast<std::uint8_t>(over.code);
  archive.Flag(over.ok);
  archive.Number(exit_code, UINT8_MAX);
  archive.Flag(over.end.task.started);
  archive.Flag(over.end.task.timed_out);
  archive.Text(over.end.task.how);
  archive.Text(over.end.kernel);
  archive.Number(over.end.hits.memory_kills);
  archive.Number(over.end.hits.refused_forks);
  archive.Number(code, static_cast<std::uint8_t>(Errc::kInternal));
  archive.Text(over.message);
  over.end.task.exit_code = exit_code;
  over.code = static_cast<Errc>(code);
}

template <typename Variant>
Bytes EncodeOne(Variant message) {
  Bytes out;
  out.push_back(static_cast<std::uint8_t>(message.index()));
  Writer writer(out);
  std::visit([&](auto& one) { Fields(writer, one); }, message);
  return out;
}

template <typename Variant, std::size_t... kIndexes>
Result<Variant> DecodeOne(ByteView packet, std::index_sequence<kIndexes...> /*all*/) {
  Variant message;
  const std::size_t index = packet.empty() ? sizeof...(kIndexes) : packet.front();
  const bool known = ((kIndexes == index && (message.template emplace<kIndexes>(), true)) || ...);
  if (!known) return Fail(Errc::kInvalidArgument, "no message of a foreground run");
  Reader reader(packet.subspan(1));
  std::visit([&](auto& one) { Fields(reader, one); }, message);
  if (!reader.AtEnd()) return Fail(Errc::kInvalidArgument, "no message of a foreground run");
  return message;
}

template <typename Variant>
Result<Variant> DecodeOne(ByteView packet) {
  return DecodeOne<Variant>(packet, std::make_index_sequence<std::variant_size_v<Variant>>());
}

}  // namespace

Bytes Encode(const ToAttendant& message) { return EncodeOne(message); }
Bytes Encode(const ToCaller& message) { return EncodeOne(message); }

Result<ToAttendant> DecodeToAttendant(ByteView packet) { return DecodeOne<ToAttendant>(packet); }
Result<ToCaller> DecodeToCaller(ByteView packet) { return DecodeOne<ToCaller>(packet); }

}  // namespace soma::sandbox
