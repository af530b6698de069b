// SPDX-License-Identifier: Apache-2.0
// The messages between host and guest, each a plain struct, and their bounded codec.
//
// Every message belongs to a channel. A channel is one operation: a request opens it, replies and
// flow-controlled data follow, a terminal reply or Reset ends it. The host opens channels with ids
// below kGuestChannelBit, the guest with ids above; ids are not used twice in a session. Channel 0
// is for messages without an operation (Identity, Denied).
//
//   request (opener)   replies, in this order
//   Init, Signal, Resize, CloseStdin, Stdin, MakeDir*, Move*, Remove     Ok  (* Entry)
//   Stat               Entry
//   Start, Attach      Started, then Data(kStdout/kStderr/kPty) and Cut, then Exit
//   ListTasks          Data(kRecords: TaskInfo each), Ok
//   ListDir            Data(kRecords: EntryInfo each), Ok
//   ReadFile           Opened, Data(kBytes), Ok
//   WriteFile          Opened, <- Data(kBytes), <- End, Entry
//   Watch              Opened, Data(kRecords: FileEvent each) until the host's Reset
//   GetStats           Stats
//   Dial               Opened, Data(kBytes) both ways, End from each side
//   Open (guest)       Opened, Data(kBytes) both ways, End from each side
//   Datagram (guest)   DatagramReply
// Instead of any reply: Failed, terminal, with the code that E2B's errors need. Either side may
// send Reset at any time; what arrives for a closed channel afterwards is dropped.
//
// Encode refuses what is beyond a limit, Decode refuses it too, and anything left over at the end.
// Strings are bytes: paths and arguments need not be UTF-8. A decoded message may hold any bytes
// within the limits, from an untrusted side.
#ifndef SOMA_WIRE_MESSAGE_H_
#define SOMA_WIRE_MESSAGE_H_

#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/reply.h"    // IWYU pragma: export
#include "wire/request.h"  // IWYU pragma: export

namespace soma::wire {

// Order is the wire's numbering: append only.
using Message =
    std::variant<Init, Start, Attach, ListTasks, Signal, Resize, Stdin, CloseStdin, Stat, ListDir,
                 MakeDir, Move, Remove, ReadFile, WriteFile, Watch, GetStats, Dial, Open, Datagram,
                 Ok, Failed, Started, Exit, Entry, Opened, Stats, DatagramReply, Data, Ack, Cut,
                 End, Reset, Identity, Denied>;

struct Envelope {
  ChannelId channel = kControlChannel;
  Message message;
};

// kOutOfRange if a field is beyond its limit or the whole beyond kMessageSizeMax.
Result<Bytes> Encode(const Envelope& envelope);
// kInvalidArgument for anything that Encode would not have made.
Result<Envelope> Decode(ByteView bytes);

std::string_view MessageName(const Message& message);

}  // namespace soma::wire

#endif  // SOMA_WIRE_MESSAGE_H_
