--------------------------- MODULE ConsumerClient ---------------------------
(***************************************************************************)
(* The member as functions: what it sends, and how an answer changes it.   *)
(* Its rules are N-*.                                                      *)
(***************************************************************************)
EXTENDS ConsumerTypes

\* A client that starts to join: epoch 0, no target, no assignment (N-TR-01,
\* N-TR-15).
JoiningClient(id, inst) ==
  [Ended("joining") EXCEPT !.memberId = id, !.instanceId = inst]

\* A fenced member loses its partitions and joins again under its own id
\* (N-TR-06). The time before a client learns that it was fenced, which NOT-01
\* is about, is part of the model.
FencedClient(p) == JoiningClient(p.memberId, p.instanceId)

\* The owned partitions that a client reports (N-HB-05). A member that is about
\* to take p and reports that it does not own p may see p given away, and then
\* take it. So the Java client is not safe here (docs/spec.md).
ReportedPartitions(p) ==
  IF ReportsPendingPartitions /\ p.reconciling THEN p.owned \cup p.assigned ELSE p.owned

\* The contents of the next heartbeat (N-HB-02..04).
NextHeartbeat(c, p) ==
  CASE p.state = "joining" -> Heartbeat(c, p, TRUE, {}, TRUE)
    [] p.unsure            -> Heartbeat(c, p, TRUE, ReportedPartitions(p), TRUE)
    [] p.unacknowledged    -> Heartbeat(c, p, TRUE, ReportedPartitions(p), FALSE)
    [] OTHER               -> Heartbeat(c, p, FALSE, {}, FALSE)

\* An assignment counts as acknowledged when the request is built (N-TR-05). One
\* that is still being reconciled does not.
AfterSending(p) == [p EXCEPT !.waiting = TRUE, !.unsure = FALSE,
                             !.unacknowledged = FALSE]

\* The callbacks are done and the new assignment is in force (N-REC-06..08,
\* INV-CL-05).
AfterCallbacks(p) == [p EXCEPT !.owned = p.assigned, !.reconciling = FALSE,
                               !.unacknowledged = TRUE]

\* An answer NONE. The first assignment after a join always starts a
\* reconciliation (N-TR-02, N-TR-03, N-REC-13).
AfterAnswer(p, y) ==
  LET news == y.includesAssignment /\ (p.state = "joining" \/ y.assignment # p.assigned)
  IN [p EXCEPT !.state = "member", !.epoch = y.epoch, !.waiting = FALSE,
               !.assigned = IF y.includesAssignment THEN y.assignment ELSE @,
               !.reconciling = @ \/ news]

\* The client does not know whether its request was handled, so its next
\* heartbeat is a full one (N-ERR-06, N-HB-04).
AfterNoAnswer(p) == [p EXCEPT !.waiting = FALSE, !.unsure = (p.state = "member")]

\* An answer of any kind. A fenced client joins again (N-ERR-02), one whose instance id
\* another process has stops and does not return (N-ERR-04), and any other error is tried again
\* (N-ERR-01).
AfterReply(p, y) ==
  CASE y.error = "NONE" -> AfterAnswer(p, y)
    [] y.error \in {"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"}       -> FencedClient(p)
    [] y.error \in {"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"}   -> Ended("stopped")
    [] y.error \in {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"}   -> AfterNoAnswer(p)
=============================================================================
