------------------------------ MODULE MCMutants -----------------------------
(***************************************************************************)
(* The classic group with one guard taken away at a time: each operator    *)
(* stands in for one of ClassicCoordinator or ClassicGroup by an override  *)
(* in a configuration that must fail. Faults that Kafka itself has need no *)
(* stand-in; they are switches.                                            *)
(***************************************************************************)
EXTENDS MCClassicGroup

\* For NextGeneration: C-ST-21 forgotten.
SameGeneration(generation) == generation

\* For CommitError: O-COMMIT-25 without the generation.
CommitErrorWithoutGeneration(g, id, inst, generation) ==
  CASE Fence(g, id, inst) # "" -> Fence(g, id, inst)
    [] g.state = "CompletingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For CommitError: O-COMMIT-27 taken too far, a rebalance refuses from its start.
CommitErrorWhilePreparing(g, id, inst, generation) ==
  CASE Fence(g, id, inst) # "" -> Fence(g, id, inst)
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state # "Stable" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For SyncError: C-SYNC-09 forgotten.
SyncErrorWithoutGeneration(g, r, inst) ==
  CASE g.state = "Empty" -> "UNKNOWN_MEMBER_ID"
    [] Fence(g, r.memberId, inst) # "" -> Fence(g, r.memberId, inst)
    [] g.state = "PreparingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> ""

\* For HeartbeatError: C-HB-08 forgotten.
HeartbeatErrorWithoutMembership(g, id, inst, generation) ==
  CASE g.state = "Empty" -> "UNKNOWN_MEMBER_ID"
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state = "PreparingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* For Loaded: a coordinator that starts from nothing (F-LOAD-01 forgotten).
LoadedWithoutLog(record) == EmptyGroup

\* For GetSync: the assignment is handed out before its record is replicated
\* (F-RT-21 forgotten).
GetSyncAnsweredEarly(g, r, inst, open) ==
  LET error == SyncError(g, r, inst)
      id == r.memberId
      caller == Caller(r)
      parked == [NotPending(g, id) EXCEPT !.members[id].awaitingSync = caller]
      assigned == [g EXCEPT !.members = [m \in DOMAIN @ |->
                     [@[m] EXCEPT !.assignment = AssignedTo(r.assignment, m)]]]
  IN CASE error # "" -> ErrorToSync(World(g), caller, error)
       [] g.state = "Stable" ->
            ReplyTo(World(NotPending(g, id)), caller,
                    SyncReply(caller, "NONE", g.members[id].assignment))
       [] SyncAppends(g, r, inst, open) ->
            Append1(SyncReplicated(parked, RecordOf(assigned)), "sync",
                    RecordOf(assigned), "")
       [] OTHER -> World(parked)

\* For Remove: C-JOIN-76 forgotten, the leader may be gone.
RemoveWithoutSuccession(g, M) ==
  [g EXCEPT !.members     = Without(@, M),
            !.pendingJoin = @ \ M,
            !.pendingSync = @ \ M]

\* For FailParkedSyncs: C-JOIN-42 forgets whoever is parked.
ForgetParkedSyncs(w, error) == w

\* For Refused: C-JOIN-21 and C-JOIN-22 forgotten.
RefusesNobody(g, id, inst) == FALSE

\* For CompleteJoin: C-JOIN-46 forgotten, the timer is not set again.
CompleteJoinWithoutRearming(w) ==
  LET late == DOMAIN w.g.members \ (Joined(w.g) \cup Static(w.g))
      g == [Remove(w.g, late) EXCEPT
              !.joinTimer = FALSE, !.delaysLeft = 0,
              !.sessionTimers = @ \ late]
      v == [w EXCEPT !.g = g]
  IN IF DOMAIN g.members = {} THEN CompleteEmpty(v)
     ELSE IF Joined(g) = {} THEN v
     ELSE CompleteWithMembers(v)

\* For NotPending: the first SyncGroup cancels the timer for all (C-SYNC-16).
NobodyIsPendingAfterOne(g, m) ==
  [g EXCEPT !.pendingSync = @ \ {m}, !.syncTimer = FALSE]

\* For Overdue: who has only just come back is late too (C-STATIC-16).
WhoeverIsPendingIsOverdue(g) == g.pendingSync

\* For SessionExpired: a member goes without a rebalance (C-TMR-07).
SessionExpiresSilently(g, id) ==
  World(Remove([g EXCEPT !.sessionTimers = @ \ {id}], {id}))

\* For Unloaded: open replacements are undone first (C-STATIC-06), although the
\* member may be in a later generation and wait for something else by then.
UnloadedAfterUndoing(g) ==
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
  IN ReplyAll(ReplyAll(World(g), M, JoinOf, ToJoin), M, SyncOf, ToSync)

\* For Surviving: what was replicated may be lost with what was not.
SurvivesOnlyIfOpen(k) == IF k = 0 THEN FirstRecord ELSE unreplicated[k].record

\* For Expecting: a client that never stops waiting (K-ERR-13).
AlwaysExpecting(c) == TRUE
=============================================================================
