------------------------------ MODULE MCMutants -----------------------------
(***************************************************************************)
(* The classic group with one guard removed at a time: in a configuration  *)
(* that must fail, each operator overrides one of ClassicCoordinator or    *)
(* ClassicGroup. KafkaClassic has the faults of Kafka itself.              *)
(***************************************************************************)
EXTENDS MCClassicKafka

\* For NextGeneration: the generation does not grow (C-ST-21).
SameGeneration(generation) == generation

\* For CommitError: the generation is not checked (O-COMMIT-25).
CommitErrorWithoutGeneration(g, id, inst, generation) ==
  CASE MemberError(g, id, inst) # "" -> MemberError(g, id, inst)
    [] g.state = "CompletingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For CommitError: a rebalance refuses commits from its start, not only while
\* completing (O-COMMIT-27).
CommitErrorWhilePreparing(g, id, inst, generation) ==
  CASE MemberError(g, id, inst) # "" -> MemberError(g, id, inst)
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state # "Stable" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For SyncError: the generation is not checked (C-SYNC-09).
SyncErrorWithoutGeneration(g, r, inst) ==
  CASE g.state = "Empty" -> "UNKNOWN_MEMBER_ID"
    [] MemberError(g, r.memberId, inst) # "" -> MemberError(g, r.memberId, inst)
    [] g.state = "PreparingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> ""

\* For HeartbeatError: the identity is not checked (C-HB-08).
HeartbeatErrorWithoutMembership(g, id, inst, generation) ==
  CASE g.state = "Empty" -> "UNKNOWN_MEMBER_ID"
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state = "PreparingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For Loaded: a new coordinator starts with an empty group (F-LOAD-01).
LoadedWithoutLog(record) == EmptyGroup

\* For HandleSync: the assignment is handed out before its record is replicated
\* (F-RT-21).
HandleSyncAnsweredEarly(g, r, inst, open) ==
  LET error == SyncError(g, r, inst)
      id == r.memberId
      caller == Caller(r)
      parked == [RemovePendingSync(g, id) EXCEPT !.members[id].awaitingSync = caller]
      assigned == [g EXCEPT !.members = [m \in DOMAIN @ |->
                     [@[m] EXCEPT !.assignment = AssignedTo(r.assignment, m)]]]
  IN CASE error # "" -> AnswerSyncError(Outcome(g), caller, error)
       [] g.state = "Stable" ->
            ReplyTo(Outcome(RemovePendingSync(g, id)), caller,
                    SyncReply(caller, "NONE", g.members[id].assignment))
       [] SyncAppends(g, r, inst, open) ->
            AppendRecord(SyncReplicated(parked, RecordOf(assigned)), "sync",
                         RecordOf(assigned), "")
       [] OTHER -> Outcome(parked)

\* For Remove: the leader may be gone (C-JOIN-76).
RemoveWithoutSuccession(g, M) ==
  [g EXCEPT !.members     = Without(@, M),
            !.pendingJoin = @ \ M,
            !.pendingSync = @ \ M]

\* For FailParkedSyncs: parked SyncGroups are not answered (C-JOIN-42).
ForgetParkedSyncs(w, error) == w

\* For IsOverCapacity: there is no limit (C-JOIN-21, C-JOIN-22).
NeverOverCapacity(g, id, inst) == FALSE

\* For CompleteJoin: the join timer is not set again (C-JOIN-46).
CompleteJoinWithoutRearming(w) ==
  LET late == DOMAIN w.g.members \ (Joined(w.g) \cup Static(w.g))
      g == [Remove(w.g, late) EXCEPT
              !.joinTimer = FALSE, !.delaysLeft = 0,
              !.sessionTimers = @ \ late]
      v == [w EXCEPT !.g = g]
  IN IF DOMAIN g.members = {} THEN CompleteEmpty(v)
     ELSE IF Joined(g) = {} THEN v
     ELSE CompleteWithMembers(v)

\* For RemovePendingSync: the first SyncGroup cancels the timer for all
\* (C-SYNC-16).
CancelSyncTimerForAll(g, m) ==
  [g EXCEPT !.pendingSync = @ \ {m}, !.syncTimer = FALSE]

\* For OverdueMembers: a member that has just returned is late too (C-STATIC-16).
EveryPendingMemberIsOverdue(g) == g.pendingSync

\* For SessionExpired: a member is removed without a rebalance (C-TMR-07).
SessionExpiresWithoutRebalance(g, id) ==
  Outcome(Remove([g EXCEPT !.sessionTimers = @ \ {id}], {id}))

\* For Unloaded: open replacements are undone first (C-STATIC-06), although the
\* member may be in a later generation by then and wait for another answer.
UnloadedAfterRollback(g) ==
  LET open == {unreplicated[i] : i \in 1..Len(unreplicated)}
      Replaced(m) == \E e \in open : e.memberId = m
      Later(m)    == \E e \in open : /\ e.memberId = m
                                     /\ e.record.generationId # g.generationId
      M == DOMAIN g.members
      JoinOf(m) == IF Later(m) THEN "no" ELSE g.members[m].awaitingJoin
      SyncOf(m) == g.members[m].awaitingSync
      ToJoin(m) == JoinError(JoinOf(m), "NOT_COORDINATOR", "")
      ToSync(m) == SyncReply(SyncOf(m), IF Replaced(m) THEN "FENCED_INSTANCE_ID"
                                        ELSE "NOT_COORDINATOR", {})
  IN ReplyAll(ReplyAll(Outcome(g), M, JoinOf, ToJoin), M, SyncOf, ToSync)

\* For Surviving: replicated records may be lost with the others.
ReplicatedStateIsLost(k) == IF k = 0 THEN FirstRecord ELSE unreplicated[k].record

\* For IsWithheld: a partition is given away while another member holds it
\* (A-COOP-01).
NothingIsWithheld(M, m, p) == FALSE

\* For HasValidClaim: a claim counts only if it is the only one, whatever the
\* generations (A-COOP-05).
HasTheOnlyClaim(M, m, p) ==
  /\ p \in MetadataOf(M, m).owned
  /\ \A n \in IdsIn(M) \ {m} : p \notin MetadataOf(M, n).owned

\* For AfterJoinPrepare: a client keeps its partitions when it joins (K-CB-02).
KeepsPartitionsAtJoin(p) == p

\* For MemberError: the instance id is not checked (C-JOIN-38f, C-SYNC-08, C-HB-08).
MemberErrorWithoutInstance(g, id, inst) ==
  IF id \in DOMAIN g.members THEN "" ELSE "UNKNOWN_MEMBER_ID"

\* For IsSpared: the session timer removes a member whose request is parked
\* (C-TMR-07).
NoMemberIsSpared(member) == FALSE

\* For MayStayAbsent: the end of a join phase removes static members too
\* (C-JOIN-44).
NoMemberMayStayAbsent(g) == {}

\* For IsSameMetadata: changed metadata counts as unchanged (C-JOIN-61).
AnyMetadataIsTheSame(old, new) == TRUE

\* For SyncTimerInJoinPhase: a new rebalance does not cancel the sync timer
\* (C-JOIN-42).
SyncTimerStays(g) == g.syncTimer

\* For AnswerReplaced: the old process of a static member is not answered
\* (C-STATIC-02).
ReplacedIsNotAnswered(w, member) == w

\* For WithoutReplaced: a replaced member stays (C-STATIC-02).
ReplacedMemberStays(members, old) == members

\* For AllJoined: pending ids are not awaited (C-ST-23).
AllMembersJoined(g) == Joined(g) = DOMAIN g.members

\* For LoadedSessionTimers: a load starts no session timers (F-LOAD-06).
NoLoadedSessionTimers(ids) == {}

\* For MaybeCompleteJoin: when all have joined, the join timer is not cancelled
\* (C-JOIN-44).
MaybeCompleteJoinKeepsTimer(w) ==
  IF w.g.state = "PreparingRebalance" /\ ~w.g.initial /\ AllJoined(w.g)
  THEN [CompleteJoin(w) EXCEPT !.g.joinTimer = TRUE] ELSE w

\* For SyncExpired: the state of the group is not checked (C-SYNC-20). A sync
\* timer never runs in another state (ASyncTimerRunsOnlyForPendingSyncs), so the
\* check is redundant here, and its removal harmless.
SyncExpiresInAnyState(g) ==
  LET late == OverdueMembers(g)
      fired == [g EXCEPT !.syncTimer = FALSE]
      rest == [Remove(fired, late \cap DOMAIN g.members) EXCEPT
                 !.sessionTimers = @ \ late]
  IN IF g.pendingSync = {} THEN Outcome(fired) ELSE PrepareRebalance(Outcome(rest))

\* For JoinExpired: a newcomer never extends the initial delay (C-JOIN-43).
InitialDelayIsNeverExtended(g) == CompleteJoin(Outcome([g EXCEPT !.joinTimer = FALSE]))

\* For AfterLeave: a leave in a join phase never ends it (C-LEAVE-22).
LeaveEndsNoJoinPhase(w) ==
  IF w.g.state \in {"CompletingRebalance", "Stable"} THEN PrepareRebalance(w) ELSE w

\* For HeartbeatError: no heartbeat reports a rebalance (C-HB-11).
HeartbeatErrorWithoutRebalance(g, id, inst, generation) ==
  CASE g.state = "Empty" -> "UNKNOWN_MEMBER_ID"
    [] MemberError(g, id, inst) # "" -> MemberError(g, id, inst)
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] OTHER -> "NONE"

\* For SyncReplicated: the assignment of an older generation counts (C-SYNC-23).
SyncReplicatedInAnyGeneration(g, record) ==
  LET Stored(m) == IF \E l \in record.members : l.memberId = m
                   THEN (CHOOSE l \in record.members : l.memberId = m).assignment ELSE {}
      ParkedRequest(m) == g.members[m].awaitingSync
      Answer(m)  == SyncReply(ParkedRequest(m), "NONE", Stored(m))
      stable == [g EXCEPT !.state = "Stable", !.sessionTimers = @ \cup Synced(g),
                          !.members = [m \in DOMAIN @ |->
                             [@[m] EXCEPT !.assignment = Stored(m), !.awaitingSync = "no"]]]
  IN IF g.state = "CompletingRebalance"
     THEN ReplyAll(Outcome(stable), DOMAIN g.members, ParkedRequest, Answer) ELSE Outcome(g)

\* For JoinAnswer: a static leader that returns is asked for an assignment (C-STATIC-04).
JoinAnswerWithoutSkip(g, c, m, skip) ==
  [api |-> "JoinGroup", to |-> c, error |-> "NONE", memberId |-> m,
   generation |-> g.generationId, leader |-> g.leader, skipAssignment |-> FALSE,
   members |-> IF m # g.leader THEN {}
               ELSE {[memberId |-> n, metadata |-> g.members[n].metadata]
                     : n \in DOMAIN g.members}]

\* For FailParkedSyncs: assignments are kept when the sync phase fails (C-JOIN-42,
\* C-SYNC-22).
FailParkedSyncsOnly(w, error) ==
  LET ParkedRequest(m) == w.g.members[m].awaitingSync
      Answer(m)  == SyncReply(ParkedRequest(m), error, {})
      g == [w.g EXCEPT !.sessionTimers = @ \cup Synced(w.g),
                       !.members = [m \in DOMAIN @ |-> [@[m] EXCEPT !.awaitingSync = "no"]]]
  IN ReplyAll([w EXCEPT !.g = g], DOMAIN g.members, ParkedRequest, Answer)

\* For Surviving: a record survives with the leader only (F-LOAD-01).
FollowersAreLost(k) ==
  LET record == IF k = 0 THEN log ELSE unreplicated[k].record
  IN IF Cardinality(record.members) < 2 THEN record
     ELSE [record EXCEPT !.members = {l \in @ : l.memberId = record.leader}]

\* For Rejoin: in a Stable group the leader is answered like any other member
\* (C-JOIN-53).
RejoinWithoutLeaderCheck(w, id, metadata, caller) ==
  LET g == [w.g EXCEPT !.members[id].metadata = metadata, !.members[id].awaitingJoin = caller]
      v == [w EXCEPT !.g = g]
  IN CASE g.state = "PreparingRebalance" -> MaybeCompleteJoin(v)
       [] w.g.members[id].metadata = metadata ->
            ReplyTo(w, caller, JoinAnswer(w.g, caller, id, FALSE))
       [] OTHER -> PrepareRebalance(v)

\* For ExpectsAnswer: a client never stops waiting (K-ERR-13).
AlwaysExpectsAnswer(c) == TRUE
=============================================================================
