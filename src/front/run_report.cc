// SPDX-License-Identifier: Apache-2.0
#include "front/run_report.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "front/limit_watch.h"
#include "front/named_hidden.h"
#include "parse/json.h"
#include "plan/view.h"
#include "policy/units.h"
#include "walls/denied.h"

namespace soma::front {

namespace {

using parse::Json;

constexpr std::size_t kRefusalLinesMax = 10;

// Python writes these wherever it reads a module from, and does without when it can't.
bool IsExpectedNoise(const walls::Denied& denied) {
  return std::string_view(denied.object).contains("/__pycache__");
}

std::string RefusalLine(const walls::Denied& denied) {
  std::string line =
      StrCat("soma:   ", denied.tried, " ", denied.object.empty() ? denied.asked : denied.object);
  if (denied.times > 1) line += StrCat(" (", denied.times, " times)");
  if (!denied.command.empty()) line += StrCat(" by ", denied.command);
  line += StrCat("\nsoma:     rule: ", denied.rule);
  if (!denied.remedy.empty()) line += StrCat("\nsoma:     to allow: ", denied.remedy);
  return line + "\n";
}

std::string_view Means(const RunReport& report) {
  return report.limits_by_cgroup ? "cgroup" : "rlimit, counted for each process";
}

// Without a cgroup nothing counts for us; a command that failed with this much memory is a fair
// guess.
bool LooksOutOfMemory(const RunReport& report) {
  if (report.limits_by_cgroup || !report.limits.memory_bytes || report.exit_code == 0) return false;
  const std::uint64_t limit = report.limits.memory_bytes->value;
  return report.end.resident_bytes_max >= limit - limit / 8;
}

Json Strings(const std::vector<std::string>& texts) {
  Json out = Json::MakeArray();
  for (const std::string& text : texts) out.Append(Json(text));
  return out;
}

Json RefusalJson(const walls::Denied& denied) {
  Json out = Json::MakeObject();
  out.Set("tried", Json(denied.tried));
  out.Set("object", Json(denied.object));
  out.Set("asked", Json(denied.asked));
  out.Set("command", Json(denied.command));
  out.Set("rule", Json(denied.rule));
  out.Set("remedy", Json(denied.remedy));
  out.Set("errno", Json(std::int64_t{denied.errno_value}));
  out.Set("times", Json(denied.times));
  return out;
}

}  // namespace

void RunReport::AddRefusal(const walls::Denied& denied) {
  const auto same = std::ranges::find_if(
      refusals, [&denied](const walls::Denied& kept) { return kept.SameRefusal(denied); });
  if (same != refusals.end()) {
    same->times += denied.times;
  } else if (refusals.size() < kRefusalsMax) {
    refusals.push_back(denied);
  } else {
    refusals_beyond += denied.times;
  }
}

std::vector<std::string> LimitLines(const RunReport& report) {
  std::vector<std::string> lines;
  const auto origin = [](const auto& limit) {
    return limit ? limit->origin.ToText() : std::string("?");
  };
  if (report.hits.timed_out) {
    lines.push_back(StrCat(
        "killed: its time is over (time = ", policy::FormatDuration(report.limits.time->value),
        ", ", origin(report.limits.time), "; to allow more: --timeout)"));
  }
  const bool guessed = LooksOutOfMemory(report);
  if (report.hits.out_of_memory_kills > 0 || guessed) {
    const std::string size = report.limits.memory_bytes
                                 ? policy::FormatByteCount(report.limits.memory_bytes->value)
                                 : "the machine's";
    lines.push_back(StrCat(guessed ? "probably out of memory" : "killed: out of memory",
                           " (memory = ", size, ", ", origin(report.limits.memory_bytes), ", by ",
                           Means(report), "; to allow more: --memory)"));
  }
  if (report.hits.refused_forks > 0) {
    lines.push_back(
        StrCat("refused ", report.hits.refused_forks, " times to start one more process (pids = ",
               report.limits.pids ? report.limits.pids->value : 0, ", ", origin(report.limits.pids),
               ", by ", Means(report), "; to allow more: --pids)"));
  }
  return lines;
}

std::string SummaryText(const RunReport& report) {
  std::string out;
  for (const std::string& line : LimitLines(report)) out += StrCat("soma: ", line, "\n");
  for (const HiddenName& name : report.named_hidden) {
    out += StrCat("soma: the command names ", EscapeForTerminal(name.path),
                  ", which is hidden from it\nsoma:     rule: ", name.rule);
    out += name.remedy.empty() ? "\n" : StrCat("\nsoma:     to allow: ", name.remedy, "\n");
  }
  std::uint64_t total = report.refusals_beyond;
  std::string list;
  std::size_t lines = 0;
  for (const walls::Denied& denied : report.refusals) {
    if (IsExpectedNoise(denied)) continue;
    total += denied.times;
    if (lines++ < kRefusalLinesMax) list += RefusalLine(denied);
  }
  if (total == 0) return out;
  out += StrCat("soma: ", total, total == 1 ? " refusal" : " refusals", " (level ", report.level,
                ", profile ", report.profile, ")\n", list);
  if (lines > kRefusalLinesMax) {
    out += StrCat("soma:   and ", lines - kRefusalLinesMax, " more: --report FILE has all\n");
  }
  return out;
}

std::string ReportJson(const RunReport& report) {
  Json out = Json::MakeObject();
  out.Set("run", Json(report.run_id));
  out.Set("level", Json(report.level));
  out.Set("level_reason", Json(report.level_reason));
  out.Set("profile", Json(report.profile));
  out.Set("workspace", Json(report.workspace));
  out.Set("command", Strings(report.command));
  out.Set("exit_code", Json(std::int64_t{report.exit_code}));
  out.Set("end", Json(report.how));
  out.Set("limits", Strings(LimitLines(report)));
  out.Set("limits_regime", Json(report.limits_by_cgroup ? "cgroup" : "rlimit"));
  Json refusals = Json::MakeArray();
  for (const walls::Denied& denied : report.refusals) refusals.Append(RefusalJson(denied));
  out.Set("refusals", std::move(refusals));
  out.Set("refusals_beyond", Json(report.refusals_beyond));
  Json hidden = Json::MakeArray();
  for (const plan::HiddenPath& path : report.hidden) {
    Json one = Json::MakeObject();
    one.Set("path", Json(path.path));
    one.Set("rule", Json(path.origin.ToText()));
    hidden.Append(std::move(one));
  }
  out.Set("hidden", std::move(hidden));
  Json named = Json::MakeArray();
  for (const HiddenName& name : report.named_hidden) {
    Json one = Json::MakeObject();
    one.Set("path", Json(name.path));
    one.Set("rule", Json(name.rule));
    one.Set("remedy", Json(name.remedy));
    named.Append(std::move(one));
  }
  out.Set("named_hidden", std::move(named));
  out.Set("missing", Strings(report.missing));
  out.Set("notes", Strings(report.notes));
  out.Set("notices", Strings(report.notices));
  out.Set("timed_out", Json(report.hits.timed_out));
  if (report.sandbox) {
    out.Set("sandbox", Json(report.sandbox->id));
    out.Set("template", Json(report.sandbox->template_id));
    out.Set("directory", Json(report.sandbox->directory));
    out.Set("kernel", Json(report.sandbox->kernel));
    return out.Write() + "\n";
  }
  out.Set("user_time_us", Json(report.end.user_time_us));
  out.Set("system_time_us", Json(report.end.system_time_us));
  out.Set("resident_bytes_max", Json(report.end.resident_bytes_max));
  return out.Write() + "\n";
}

}  // namespace soma::front
