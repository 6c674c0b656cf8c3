----------------------------- MODULE MixedClient ----------------------------
(***************************************************************************)
(* A client process speaks one protocol from start to end. What it makes   *)
(* of an answer is said in ClassicClient and ConsumerClient; here are the  *)
(* answers that only a mixed group gives.                                  *)
(***************************************************************************)
EXTENDS MixedTypes

\* K-ERR-09: the policy does not let it in.
AfterClassicError(p, error) ==
  IF error = "INCONSISTENT_GROUP_PROTOCOL" THEN ClassicMember!Ended("stopped")
  ELSE ClassicMember!AfterError(p, error)

\* The answer to a JoinGroup; with NONE a SyncGroup follows.
AfterJoinReply(p, y) ==
  CASE y.error = "NONE"               -> ClassicMember!AfterJoin(p, y)
    [] y.error = "MEMBER_ID_REQUIRED" -> ClassicMember!AfterIdGiven(p, y.memberId)
    [] OTHER                          -> AfterClassicError(p, y.error)

AfterSyncReply(p, y) ==
  IF y.error = "NONE" THEN ClassicMember!AfterSync(p, y.assignment)
  ELSE AfterClassicError(p, y.error)

\* N-ERR-03, N-ERR-05: the group may be converted later; or it is no consumer group.
AfterHeartbeatReply(p, y) ==
  CASE y.error = "COORDINATOR_LOAD_IN_PROGRESS" -> ConsumerMember!AfterSilence(p)
    [] y.error \in {"GROUP_ID_NOT_FOUND", "UNKNOWN_SERVER_ERROR"}
                                                -> ConsumerMember!Ended("stopped")
    [] OTHER                                    -> ConsumerMember!AfterReply(p, y)
=============================================================================
