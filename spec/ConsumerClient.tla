--------------------------- MODULE ConsumerClient ---------------------------
(***************************************************************************)
(* The member as functions: what it sends, what it makes of an answer.     *)
(* Rules N-*.                                                              *)
(***************************************************************************)
EXTENDS ConsumerTypes

\* N-TR-01, N-TR-15
Starting(id, inst) ==
  [Ended("joining") EXCEPT !.memberId = id, !.instanceId = inst]

\* N-TR-06: partitions are lost, and it joins again under its own id. The time
\* until a client learns that it was fenced is what NOT-01 is about; that is there.
Lost(p) == Starting(p.memberId, p.instanceId)

\* N-HB-05. Who is about to take p and says "p is not mine" may see p given away
\* and then take it, so the Java client is not safe here (docs/spec.md).
Reported(p) ==
  IF TellsWhatComes /\ p.reconciling THEN p.owned \cup p.assigned ELSE p.owned

\* N-HB-02..04: what the next heartbeat holds.
NextHeartbeat(c, p) ==
  CASE p.state = "joining" -> Heartbeat(c, p, TRUE, {}, TRUE)
    [] p.unsure            -> Heartbeat(c, p, TRUE, Reported(p), TRUE)
    [] p.unacknowledged    -> Heartbeat(c, p, TRUE, Reported(p), FALSE)
    [] OTHER               -> Heartbeat(c, p, FALSE, {}, FALSE)

\* N-TR-05: acknowledged when the request is built. What is worked on is not.
AfterSending(p) == [p EXCEPT !.waiting = TRUE, !.unsure = FALSE,
                             !.unacknowledged = FALSE]

\* N-REC-06..08, INV-CL-05: callbacks done, the new assignment in force.
AfterCallbacks(p) == [p EXCEPT !.owned = p.assigned, !.reconciling = FALSE,
                               !.unacknowledged = TRUE]

\* N-TR-02, N-TR-03, N-REC-13: the first assignment is always news.
AfterAnswer(p, y) ==
  LET news == y.tells /\ (p.state = "joining" \/ y.assignment # p.assigned)
  IN [p EXCEPT !.state = "member", !.epoch = y.epoch, !.waiting = FALSE,
               !.assigned = IF y.tells THEN y.assignment ELSE @,
               !.reconciling = @ \/ news]

\* N-ERR-06, N-HB-04: it does not know what became of its request.
AfterSilence(p) == [p EXCEPT !.waiting = FALSE, !.unsure = (p.state = "member")]

AfterReply(p, y) ==
  CASE y.error = "NONE" -> AfterAnswer(p, y)
    [] y.error \in {"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"} -> Lost(p)  \* N-ERR-02
    [] y.error \in {"FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"}
                         -> Ended("stopped")                              \* N-ERR-04
    [] y.error \in {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"}
                         -> AfterSilence(p)                               \* N-ERR-01
=============================================================================
