// SPDX-License-Identifier: Apache-2.0
// Task: one started program with its streams, its ring of output, and those who read it.
//
// Output goes pipe -> ring -> readers. A reader that is slow stops the reading of the pipe, so the
// program waits; without any reader the ring drops its oldest bytes. A task ends when its program
// was reaped and its output is at its end. Children may hold the pipes open for longer; after a
// SIGTERM or SIGKILL they are not waited for: what was in the pipes then is still taken, no more.
#ifndef SOMA_GUEST_TASK_H_
#define SOMA_GUEST_TASK_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "guest/loop.h"
#include "guest/output_ring.h"
#include "sys/fd.h"
#include "sys/process.h"
#include "wire/message.h"
#include "wire/record.h"
#include "wire/session.h"

namespace soma::guest {

// The agent's ends of a task's streams. With a terminal only `terminal` is set, and it is the
// program's input as well.
struct TaskStreams {
  Fd input;
  Fd output;
  Fd error;
  Fd terminal;
};

class Task {
 public:
  static constexpr std::size_t kPendingInputMax = std::size_t{256} * 1024;

  Task(Loop& loop, wire::Session& session, wire::TaskInfo info, sys::Process process);
  // Begins to read and write; once.
  Status Connect(TaskStreams streams);
  // Who still reads is told that the task was forgotten.
  ~Task();
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  pid_t pid() const { return process_.pid(); }
  const wire::TaskInfo& info() const { return info_; }
  bool ended() const { return exit_.has_value() && !OutputIsOpen(); }
  bool exited() const { return exit_.has_value(); }
  bool has_readers() const { return !readers_.empty(); }
  std::size_t memory_bytes() const { return ring_.memory_bytes(); }

  // Answers Started on `channel`, then all output from the ring's beginning, then Exit.
  void Attach(wire::ChannelId channel);
  void Detach(wire::ChannelId channel);
  // The session takes more for this channel.
  void Pump(wire::ChannelId channel);

  // Each answers on `channel` in the end.
  void WriteInput(wire::ChannelId channel, Bytes bytes);
  void CloseInput(wire::ChannelId channel);
  Status Resize(wire::TerminalSize size);

  // To the program alone. kNotFound when it was reaped already.
  Status Signal(int number);
  void TimeOut();

  // The program was reaped with this wait status.
  void OnExit(int wait_status);

  std::optional<MonotonicTime> deadline;
  MonotonicTime ended_at{};

 private:
  struct Source {
    wire::DataKind kind = wire::DataKind::kStdout;
    Fd fd;
    Loop::Registration registration;
    // Once the output is cut: how much of what is in the pipe is still to be taken.
    std::optional<std::size_t> budget;
  };
  struct Reader {
    wire::ChannelId channel = 0;
    std::uint64_t position = 0;
  };
  struct PendingInput {
    wire::ChannelId channel = 0;
    Bytes bytes;
    std::size_t offset = 0;
  };

  Status AddSource(Source& source, wire::DataKind kind, Fd fd);
  Status AddInput(Fd fd);
  void OnOutputReady(Source& source);
  void ReadSome(Source& source, std::size_t room);
  void CutOutput();
  std::size_t Room() const;
  void PumpAll();
  // True when the reader has got everything and was told the end.
  bool PumpReader(Reader& reader);
  void WantOutput();
  bool OutputIsOpen() const;
  void FlushInput();
  void FailInput(const std::string& why);
  void Close(Source& source);
  wire::Exit ExitMessage() const;

  Loop& loop_;
  wire::Session& session_;
  wire::TaskInfo info_;
  sys::Process process_;
  std::array<Source, 2> sources_;
  Fd input_;  // with a terminal, a duplicate of it
  Loop::Registration input_ready_;
  OutputRing ring_;
  std::vector<Reader> readers_;
  std::deque<PendingInput> pending_input_;
  std::size_t pending_input_bytes_ = 0;
  bool close_input_when_flushed_ = false;
  bool was_ended_by_signal_ = false;  // by us: SIGTERM or SIGKILL
  bool timed_out_ = false;
  std::optional<int> exit_;  // wait status
};

}  // namespace soma::guest

#endif  // SOMA_GUEST_TASK_H_
