// SPDX-License-Identifier: Apache-2.0
// PolicyJudge: answers the supervisor's questions with the policy. In the process of `soma run`, on
// its one thread, while the task sleeps in its call; asks nobody and waits for nothing.
//
// What it is told was read from the task's memory and may change afterwards, so "allow" opens
// nothing: the walls decide. Its refusals are what the user reads.
#ifndef SOMA_FRONT_POLICY_JUDGE_H_
#define SOMA_FRONT_POLICY_JUDGE_H_

#include "plan/view.h"
#include "policy/model.h"
#include "walls/judge.h"

namespace soma::front {

class PolicyJudge final : public walls::Judge {
 public:
  // `policy` is what the user wrote, `effective` a View's: with the sandbox's own places. Both
  // outlive the judge. `has_broker`: connects are captured and a broker decides on names, so that
  // addresses alone say nothing here.
  PolicyJudge(const policy::Policy& policy, const plan::View& view, bool has_broker)
      : policy_(policy), view_(view), has_broker_(has_broker) {}

  walls::Verdict Decide(const walls::Request& request) override;

 private:
  walls::Verdict DecideWrite(const walls::RequestPath& path) const;
  walls::Verdict DecideRename(const walls::RequestPath& from, const walls::RequestPath& to) const;
  walls::Verdict DecideUnseen(const walls::RequestPath& path) const;
  walls::Verdict DecideConnect(const walls::RequestAddress& address) const;
  walls::Verdict DecideSocketPath(const walls::RequestPath& path) const;

  const policy::Policy& policy_;
  const plan::View& view_;
  bool has_broker_;
};

}  // namespace soma::front

#endif  // SOMA_FRONT_POLICY_JUDGE_H_
