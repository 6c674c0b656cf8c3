----------------------------- MODULE MixedClient ----------------------------
(***************************************************************************)
(* A client process speaks one protocol from start to end. ClassicClient   *)
(* and ConsumerClient specify how answers change it; this module adds the  *)
(* answers that only a mixed group gives.                                  *)
(***************************************************************************)
EXTENDS MixedTypes

\* INCONSISTENT_GROUP_PROTOCOL is fatal: the policy does not let the client in
\* (K-ERR-09).
AfterClassicError(p, error) ==
  IF error = "INCONSISTENT_GROUP_PROTOCOL" THEN ClassicMember!Ended("stopped")
  ELSE ClassicMember!AfterError(p, error)

\* The answer to a JoinGroup; after NONE the client sends SyncGroup.
AfterJoinReply(p, y) ==
  CASE y.error = "NONE"               -> ClassicMember!AfterJoin(p, y)
    [] y.error = "MEMBER_ID_REQUIRED" -> ClassicMember!AfterMemberIdRequired(p, y.memberId)
    [] OTHER                          -> AfterClassicError(p, y.error)

AfterSyncReply(p, y) ==
  IF y.error = "NONE" THEN ClassicMember!AfterSync(p, y.assignment)
  ELSE AfterClassicError(p, y.error)

\* The client tries again if the group may be converted later, and stops if it
\* is not a consumer group (N-ERR-03, N-ERR-05).
AfterHeartbeatReply(p, y) ==
  CASE y.error = "COORDINATOR_LOAD_IN_PROGRESS" -> ConsumerMember!AfterNoAnswer(p)
    [] y.error \in {"GROUP_ID_NOT_FOUND", "UNKNOWN_SERVER_ERROR"}
                                                -> ConsumerMember!Ended("stopped")
    [] OTHER                                    -> ConsumerMember!AfterReply(p, y)
=============================================================================
