// SPDX-License-Identifier: Apache-2.0
#include "front/run_record.h"

#include <bit>
#include <string>
#include <string_view>

#include "audit/event.h"
#include "audit/recorder.h"
#include "base/error.h"
#include "base/result.h"
#include "base/text.h"
#include "front/run_report.h"
#include "policy/level.h"
#include "policy/model.h"
#include "walls/denied.h"

namespace soma::front {

using audit::Durability;
using audit::Event;
using audit::EventKind;

Status RunRecord::Start(const RunReport& report, const policy::Policy& policy) {
  Event decided{
      .kind = EventKind::kPolicyDecision, .verdict = audit::Verdict::kAllow, .run = run_id_};
  decided.subject = StrCat("profile ", policy.profile);
  decided.object = report.workspace;
  decided.rule = report.level_reason;
  decided.fields = {{"level", report.level},
                    {"minimum", std::string(LevelName(policy.isolation.minimum.value))}};
  if (policy.locked) decided.fields.emplace_back("locked", policy.locked->ToText());
  SOMA_TRY(recorder_.Record(decided, Durability::kSoon));
  Event start{.kind = EventKind::kStart, .verdict = audit::Verdict::kAllow, .run = run_id_};
  if (report.sandbox) start.sandbox = report.sandbox->id;
  start.subject = Join(report.command, " ");
  start.object = report.workspace;
  start.fields = {
      {"level", report.level}, {"level_reason", report.level_reason}, {"profile", report.profile}};
  if (report.sandbox) start.fields.emplace_back("template", report.sandbox->template_id);
  if (!report.notes.empty()) start.fields.emplace_back("notes", Join(report.notes, "; "));
  return recorder_.Record(start, Durability::kSoon);
}

Status RunRecord::Refusal(const walls::Denied& denied) {
  ++refusals_;
  const bool is_beyond = refusals_ > kRefusalsRecorded;
  if (is_beyond && !std::has_single_bit(refusals_)) {
    ++refusals_unrecorded_;
    return {};
  }
  Event event{.time = denied.when,
              .kind = EventKind::kRefusal,
              .verdict = audit::Verdict::kDeny,
              .run = run_id_};
  event.subject = StrCat(denied.command, "[", denied.pid, "]");
  event.object = denied.object.empty() ? denied.asked : denied.object;
  event.rule = denied.rule;
  event.remedy = denied.remedy;
  event.fields = {{"tried", denied.tried}, {"errno", std::string(ErrnoName(denied.errno_value))}};
  if (denied.times > 1) event.fields.emplace_back("times", StrCat(denied.times));
  if (is_beyond) event.fields.emplace_back("count", StrCat(refusals_));
  return recorder_.Record(event, Durability::kSoon);
}

Status RunRecord::NotStarted(std::string_view command, std::string_view why) {
  Event event{.kind = EventKind::kPolicyDecision, .verdict = audit::Verdict::kDeny, .run = run_id_};
  event.subject = command;
  event.rule = why;
  return recorder_.Record(event, Durability::kSoon);
}

Status RunRecord::End(const RunReport& report) {
  Event end{.kind = EventKind::kEnd, .run = run_id_};
  if (report.sandbox) end.sandbox = report.sandbox->id;
  end.subject = Join(report.command, " ");
  end.fields = {{"exit", StrCat(report.exit_code)}, {"how", report.how}};
  const auto limits = LimitLines(report);
  if (!limits.empty()) end.fields.emplace_back("limits", Join(limits, "; "));
  if (refusals_unrecorded_ > 0) {
    end.fields.emplace_back("refusals", StrCat(refusals_));
    end.fields.emplace_back("refusals_unrecorded", StrCat(refusals_unrecorded_));
  }
  if (report.refusals_beyond > 0)
    end.fields.emplace_back("refusals_beyond", StrCat(report.refusals_beyond));
  return recorder_.Record(end, Durability::kSoon);
}

}  // namespace soma::front
