------------------------- MODULE ClassicCoordinator -------------------------
(***************************************************************************)
(* How the coordinator handles each event: a request, a replicated record, *)
(* a timer, a fail-over. These functions return the outcomes of            *)
(* ClassicRebalance; the module has no variables.                          *)
(***************************************************************************)
EXTENDS ClassicRebalance

(***************************************************************************)
(* JoinGroup. inst is the instance id in the request, fresh the next       *)
(* member id.                                                              *)
(***************************************************************************)

\* The member that the capacity check looks for. A member that has a place, or a
\* static one that returns, needs no new place (C-JOIN-20..22, C-JOIN-75).
KnownMember(g, id, inst) ==
  IF id = "" /\ inst # "" THEN MappedMembers(g, inst) ELSE {id} \cap DOMAIN g.members

IsOverCapacity(g, id, inst) ==
  LET known == KnownMember(g, id, inst)
  IN CASE g.state = "Empty" -> FALSE
       [] g.state = "PreparingRebalance" ->
            known \cap Joined(g) = {} /\ Cardinality(Joined(g)) >= MaxSize
       [] OTHER ->
            known = {} /\ Cardinality(DOMAIN g.members) >= MaxSize

\* If the refused id was the last one missing, the join phase ends (C-JOIN-23).
AfterRefusal(w) == MaybeCompleteJoin(w)

\* The coordinator refuses a join for lack of room and removes the id (C-JOIN-13).
\* The session timer of the refused id stays set.
RejectOverCapacity(w, id, caller) ==
  LET gone == {id} \cap (DOMAIN w.g.members \cup w.g.pendingJoin)
      v == AnswerJoinError([w EXCEPT !.g = Remove(@, gone)], caller,
                           "GROUP_MAX_SIZE_REACHED")
  IN IF gone = {} THEN v ELSE AfterRefusal(v)

\* A dynamic join without a member id is answered with a fresh id, which stays
\* pending until the client joins with it (C-JOIN-34).
RequireMemberId(w, fresh, caller) ==
  LET g == [w.g EXCEPT !.pendingJoin = @ \cup {fresh},
                       !.sessionTimers = @ \cup {fresh}]
  IN ReplyTo([w EXCEPT !.g = g], caller,
             JoinError(caller, "MEMBER_ID_REQUIRED", fresh))

\* The old process of a static member learns that another has taken its place
\* (C-STATIC-02).
AnswerReplaced(w, member) ==
  AnswerSyncError(AnswerJoinError(w, member.awaitingJoin, "FENCED_INSTANCE_ID"),
                  member.awaitingSync, "FENCED_INSTANCE_ID")

\* The members without the one that is replaced: an instance id belongs to one member
\* (C-STATIC-02, INV-MEM-02).
WithoutReplaced(members, old) == Without(members, {old})

\* The pending syncs: the new id has to sync if the old one had to (C-STATIC-16).
PendingAfterReplacement(pending, old, fresh) ==
  IF old \in pending THEN (pending \ {old}) \cup {fresh} ELSE pending

\* A static member returns under a fresh id and takes the place of its old id.
\* Requests parked under the old id are answered FENCED_INSTANCE_ID. A Stable
\* group does not rebalance (C-STATIC-02..04, 09, 10, 16, 20).
ReplaceStatic(w, old, fresh, metadata, caller) ==
  LET before == w.g.members[old]
      v == AnswerReplaced(w, before)
      after == [before EXCEPT !.metadata = metadata, !.isNew = FALSE,
                              !.awaitingJoin = caller, !.awaitingSync = "no"]
      g == [w.g EXCEPT
              !.members = Put(WithoutReplaced(@, old), fresh, after),
              !.leader = IF @ = old THEN fresh ELSE @,
              !.pendingSync = PendingAfterReplacement(@, old, fresh),
              !.sessionTimers = @ \cup {fresh}]
      u == [v EXCEPT !.g = g]
  IN CASE g.state = "Stable" -> AppendRecord(u, "replace", RecordOf(g), fresh)
       [] g.state = "CompletingRebalance" -> PrepareRebalance(u)
       [] OTHER -> MaybeCompleteJoin(u)

\* Unchanged metadata needs no rebalance (C-JOIN-61).
IsSameMetadata(old, new) == old = new

\* A known member joins again. The coordinator parks the request, or answers it
\* at once if nothing changed for the current generation (C-JOIN-50..55).
Rejoin(w, id, metadata, caller) ==
  LET g == [w.g EXCEPT !.members[id].metadata = metadata,
                       !.members[id].awaitingJoin = caller]
      v == [w EXCEPT !.g = g]
      same == IsSameMetadata(w.g.members[id].metadata, metadata)
  IN CASE g.state = "PreparingRebalance" -> MaybeCompleteJoin(v)
       [] same /\ ~(g.state = "Stable" /\ id = g.leader) ->
            ReplyTo(w, caller, JoinAnswer(w.g, caller, id, FALSE))
       [] OTHER -> PrepareRebalance(v)

\* The order of the checks is that of C-JOIN-74: capacity first, identity later.
HandleJoin(g, r, inst, fresh) ==
  LET w == Outcome(g)
      id == r.memberId
      caller == Caller(r)
      fence == MemberError(g, id, inst)
  IN CASE IsOverCapacity(g, id, inst) -> RejectOverCapacity(w, id, caller)
       [] id = "" /\ inst = "" -> RequireMemberId(w, fresh, caller)
       [] id = "" /\ MappedMembers(g, inst) # {} ->
            ReplaceStatic(w, First(MappedMembers(g, inst)), fresh, r.metadata, caller)
       [] id = "" -> AddMember(w, fresh, inst, r.metadata, caller)  \* unknown instance id (C-JOIN-33)
       [] id \in g.pendingJoin ->                                   \* pending id (C-JOIN-38d)
            AddMember(w, id, inst, r.metadata, caller)
       [] fence # "" -> AnswerJoinError(w, caller, fence)
       [] OTHER -> Rejoin(w, id, r.metadata, caller)

\* Whether answering r uses up a member id.
NeedsId(g, r, inst) == r.memberId = "" /\ ~IsOverCapacity(g, "", inst)

-----------------------------------------------------------------------------
(***************************************************************************)
(* SyncGroup. open is the sequence of unreplicated records.                *)
(***************************************************************************)

\* The error that refuses a SyncGroup, or "" if it passes (C-SYNC-05, 08, 09,
\* 15).
SyncError(g, r, inst) ==
  CASE g.state = "Empty" -> "UNKNOWN_MEMBER_ID"
    [] MemberError(g, r.memberId, inst) # "" -> MemberError(g, r.memberId, inst)
    [] r.generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state = "PreparingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> ""

\* No assignment of this generation is open (C-SYNC-19).
NoAssignmentIsOpen(g, open) ==
  \A i \in 1..Len(open) :
    open[i].cause = "sync" => open[i].record.generationId # g.generationId

\* Whether this SyncGroup appends the assignment: the first one of the leader in
\* a generation does (C-SYNC-17).
SyncAppends(g, r, inst, open) ==
  /\ SyncError(g, r, inst) = ""
  /\ g.state = "CompletingRebalance"
  /\ r.memberId = g.leader
  /\ NoAssignmentIsOpen(g, open)

\* The partitions of member m; none if the leader left it out (C-SYNC-17).
AssignedTo(assignment, m) ==
  UNION {a.partitions : a \in {b \in assignment : b.memberId = m}}

\* The member has synced, so it is no longer pending. With the last one
\* the sync timer is cancelled (C-SYNC-16, C-SYNC-18).
RemovePendingSync(g, m) ==
  [g EXCEPT !.pendingSync = @ \ {m},
            !.syncTimer = @ /\ g.pendingSync \ {m} # {}]

HandleSync(g, r, inst, open) ==
  LET error == SyncError(g, r, inst)
      id == r.memberId
      caller == Caller(r)
      parked == [RemovePendingSync(g, id) EXCEPT !.members[id].awaitingSync = caller]
      assigned == [g EXCEPT !.members = [m \in DOMAIN @ |->
                     [@[m] EXCEPT !.assignment = AssignedTo(r.assignment, m)]]]
  IN CASE error # "" -> AnswerSyncError(Outcome(g), caller, error)
       [] g.state = "Stable" ->                                     \* the stored assignment (C-SYNC-18)
            ReplyTo(Outcome(RemovePendingSync(g, id)), caller,
                    SyncReply(caller, "NONE", g.members[id].assignment))
       [] SyncAppends(g, r, inst, open) ->                          \* the leader (C-SYNC-17)
            AppendRecord(Outcome(parked), "sync", RecordOf(assigned), "")
       [] OTHER -> Outcome(parked)                                    \* a follower waits (C-SYNC-16)

\* The append of the assignment failed at once, so the log is unchanged. Parked
\* SyncGroups fail and the group rebalances (C-SYNC-22).
SyncAppendFailed(w) ==
  PrepareRebalance(FailParkedSyncs([w EXCEPT !.app = << >>],
                                   "COORDINATOR_NOT_AVAILABLE"))

-----------------------------------------------------------------------------
(***************************************************************************)
(* The record e has been replicated.                                       *)
(***************************************************************************)

\* The assignment counts only if the group is still completing the generation of
\* the record. Then every parked SyncGroup is answered, and the session timers
\* of the answered members are set (C-SYNC-21, C-SYNC-23, C-SYNC-24).
SyncReplicated(g, record) ==
  LET Stored(m) == (CHOOSE l \in record.members : l.memberId = m).assignment
      ParkedRequest(m) == g.members[m].awaitingSync
      Answer(m)  == SyncReply(ParkedRequest(m), "NONE", Stored(m))
      stable == [g EXCEPT !.state = "Stable",
                          !.sessionTimers = @ \cup Synced(g),
                          !.members = [m \in DOMAIN @ |->
                             [@[m] EXCEPT !.assignment = Stored(m),
                                          !.awaitingSync = "no"]]]
  IN IF g.state = "CompletingRebalance" /\ g.generationId = record.generationId
     THEN ReplyAll(Outcome(stable), DOMAIN g.members, ParkedRequest, Answer)
     ELSE Outcome(g)

\* The parked JoinGroup of a replacement is answered, whatever the group's state
\* (C-STATIC-04, C-STATIC-17). Exceptions: a leader whose group is preparing
\* stays parked, and a member that is gone has no request left.
ReplaceReplicated(g, id) ==
  LET caller == g.members[id].awaitingJoin
  IN IF id \notin DOMAIN g.members THEN Outcome(g)
     ELSE IF caller = "no" \/ (g.state = "PreparingRebalance" /\ id = g.leader)
     THEN Outcome(g)
     ELSE ReplyTo(Outcome([g EXCEPT !.members[id].awaitingJoin = "no"]),
                  caller, JoinAnswer(g, caller, id, TRUE))

Replicated(g, e) ==
  CASE e.cause = "sync"    -> SyncReplicated(g, e.record)
    [] e.cause = "replace" -> ReplaceReplicated(g, e.memberId)
    [] OTHER               -> Outcome(g)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Heartbeat, LeaveGroup, timers, fail-over.                               *)
(***************************************************************************)

\* The answer to a heartbeat: the identity is checked first, then the
\* generation, then the state (C-HB-05..12).
HeartbeatError(g, id, inst, generation) ==
  CASE g.state = "Empty" -> "UNKNOWN_MEMBER_ID"
    [] MemberError(g, id, inst) # "" -> MemberError(g, id, inst)
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state = "PreparingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* The answer to a commit of a client that knows its generation (O-COMMIT-25,
\* 27, 28).
CommitError(g, id, inst, generation) ==
  CASE MemberError(g, id, inst) # "" -> MemberError(g, id, inst)
    [] generation # g.generationId -> "ILLEGAL_GENERATION"
    [] g.state = "CompletingRebalance" -> "REBALANCE_IN_PROGRESS"
    [] OTHER -> "NONE"

\* After members or pending ids left: a Completing or Stable group rebalances;
\* in a Preparing one the join phase may end (C-LEAVE-21, 22).
AfterLeave(w) ==
  CASE w.g.state \in {"CompletingRebalance", "Stable"} -> PrepareRebalance(w)
    [] OTHER -> MaybeCompleteJoin(w)

\* The parked SyncGroup of a member that leaves is answered (C-LEAVE-24).
AnswerSyncOfLeaver(w, member) ==
  AnswerSyncError(w, member.awaitingSync, "UNKNOWN_MEMBER_ID")

\* A leave by member id, without instance id, removes the member or pending id
\* and answers its parked requests (C-LEAVE-12..14, C-LEAVE-24).
HandleLeave(g, id) ==
  LET member == g.members[id]
      w == AnswerJoinError(Outcome(g), member.awaitingJoin, "UNKNOWN_MEMBER_ID")
      v == AnswerSyncOfLeaver(w, member)
      gone == [Remove(g, {id}) EXCEPT !.sessionTimers = @ \ {id}]
  IN CASE id \in g.pendingJoin    -> AfterLeave(Outcome(gone))
       [] id \in DOMAIN g.members -> AfterLeave([v EXCEPT !.g = gone])
       [] OTHER                   -> Outcome(g)

\* An expiry ends the join phase if all others have joined, even during the
\* initial delay (C-TMR-06, C-TMR-08).
CompleteIfAllJoined(w) ==
  IF w.g.state = "PreparingRebalance" /\ AllJoined(w.g)
  THEN CompleteJoin(w) ELSE w

\* A member whose request is parked cannot send another, so it is not late
\* (C-TMR-07).
IsSpared(member) ==
  ~member.isNew /\ (member.awaitingJoin # "no" \/ member.awaitingSync # "no")

\* The session timer removes its member or pending id. A member with a parked
\* request is spared unless it is new; for an unknown id nothing happens
\* (C-TMR-06, 07, 09).
SessionExpired(g, id) ==
  LET fired == [g EXCEPT !.sessionTimers = @ \ {id}]
      member == g.members[id]
      w == AnswerJoinError(Outcome(fired), member.awaitingJoin, "UNKNOWN_MEMBER_ID")
      v == [w EXCEPT !.g = Remove(fired, {id})]
  IN CASE id \in g.pendingJoin -> CompleteIfAllJoined(Outcome(Remove(fired, {id})))
       [] id \notin DOMAIN g.members -> Outcome(fired)
       [] IsSpared(member) -> Outcome(fired)
       [] g.state \in {"CompletingRebalance", "Stable"} -> PrepareRebalance(v)
       [] OTHER -> CompleteIfAllJoined(v)

\* The join timer fires: a newcomer in the initial delay extends the delay,
\* otherwise the join phase ends (C-JOIN-43, C-JOIN-44).
JoinExpired(g) ==
  LET fired == [g EXCEPT !.joinTimer = FALSE]
  IN IF g.initial /\ g.newMemberAdded /\ g.delaysLeft > 0
     THEN Outcome([g EXCEPT !.newMemberAdded = FALSE, !.delaysLeft = @ - 1])
     ELSE CompleteJoin(Outcome(fired))

\* Members that have not synced in time. With C-STATIC-16 fixed, an entry may
\* have moved to a member that has just returned: its JoinGroup is parked, so it
\* is not late (as in C-TMR-07).
OverdueMembers(g) == g.pendingSync \ Joined(g)

\* The sync timer removes the members that are late and starts a rebalance
\* (C-SYNC-20). Members whose JoinGroup is parked have joined that rebalance.
SyncExpired(g) ==
  LET late == OverdueMembers(g)
      fired == [g EXCEPT !.syncTimer = FALSE]
      rest == [Remove(fired, late \cap DOMAIN g.members) EXCEPT
                 !.sessionTimers = @ \ late]  \* also of an id that was replaced meanwhile
  IN IF g.pendingSync = {} \/ g.state \notin {"CompletingRebalance", "Stable"}
     THEN Outcome(fired) ELSE PrepareRebalance(Outcome(rest))

\* The members whose session timers a load starts: all (F-LOAD-06).
LoadedSessionTimers(ids) == ids

\* The group that a new coordinator loads: Stable or Empty, with the members of
\* the record, all session timers set, and no other soft state (C-ST-07,
\* F-REPLAY-01, F-LOAD-06, F-SURV-02, F-SURV-03).
Loaded(record) ==
  LET ids == {l.memberId : l \in record.members}
      Logged(m) == CHOOSE l \in record.members : l.memberId = m
  IN [EmptyGroup EXCEPT
        !.state = IF ids = {} THEN "Empty" ELSE "Stable",
        !.generationId = record.generationId,
        !.leader = record.leader,
        !.members = [m \in ids |->
           [instanceId |-> Logged(m).instanceId,
            metadata |-> Logged(m).metadata,
            assignment |-> Logged(m).assignment,
            isNew |-> FALSE, awaitingJoin |-> "no", awaitingSync |-> "no"]],
        !.sessionTimers = LoadedSessionTimers(ids)]

\* A coordinator that loses the group answers every parked request
\* NOT_COORDINATOR (F-UNLOAD-01).
Unloaded(g) ==
  LET M == DOMAIN g.members
      JoinOf(m) == g.members[m].awaitingJoin
      SyncOf(m) == g.members[m].awaitingSync
      ToJoin(m) == JoinError(JoinOf(m), "NOT_COORDINATOR", "")
      ToSync(m) == SyncReply(SyncOf(m), "NOT_COORDINATOR", {})
  IN ReplyAll(ReplyAll(Outcome(g), M, JoinOf, ToJoin), M, SyncOf, ToSync)

-----------------------------------------------------------------------------
(***************************************************************************)
(* Clients whose requests are parked.                                      *)
(***************************************************************************)
IsParked(g, c) ==
  \E m \in DOMAIN g.members : c \in {g.members[m].awaitingJoin, g.members[m].awaitingSync}

\* c has stopped waiting: no client gets the answer to its parked request.
WithoutListener(g, c) ==
  [g EXCEPT !.members = [m \in DOMAIN @ |->
     [@[m] EXCEPT !.awaitingJoin = IF @ = c THEN "nobody" ELSE @,
                  !.awaitingSync = IF @ = c THEN "nobody" ELSE @]]]
=============================================================================
