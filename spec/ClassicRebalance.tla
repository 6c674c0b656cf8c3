-------------------------- MODULE ClassicRebalance --------------------------
(***************************************************************************)
(* The rebalance itself, as functions from an outcome to an outcome. An    *)
(* outcome is what one event has done so far:                              *)
(*    g    the group                                                       *)
(*    out  the replies sent                                                *)
(*    app  the records appended, each [cause, record, memberId]            *)
(* The rules chain: a leave prepares a rebalance, which completes at once, *)
(* which answers every member. So each rule is one function, and the chain *)
(* is their composition.                                                   *)
(***************************************************************************)
EXTENDS ClassicTypes

Outcome(g) == [g |-> g, out |-> {}, app |-> << >>]

Reply(w, y) == [w EXCEPT !.out = @ \cup {y}]

\* Answers to a client that no longer listens vanish.
ReplyTo(w, to, y) == IF to \in Clients THEN Reply(w, y) ELSE w

AnswerJoinError(w, to, error) == ReplyTo(w, to, JoinError(to, error, ""))
AnswerSyncError(w, to, error) == ReplyTo(w, to, SyncReply(to, error, {}))

\* Answers several clients at once: reply(m) is the reply to m's future.
ReplyAll(w, M, future(_), reply(_)) ==
  [w EXCEPT !.out = @ \cup {reply(m) : m \in {n \in M : future(n) \in Clients}}]

RecordOf(g) ==
  [generationId |-> g.generationId, leader |-> g.leader,
   members |-> {[memberId   |-> m,
                 instanceId |-> g.members[m].instanceId,
                 metadata   |-> g.members[m].metadata,
                 assignment |-> g.members[m].assignment]
                : m \in DOMAIN g.members}]

AppendRecord(w, cause, record, id) ==
  [w EXCEPT !.app = Append(@, [cause |-> cause, record |-> record,
                               memberId |-> id])]

-----------------------------------------------------------------------------
(***************************************************************************)
(* The members of a group.                                                 *)
(***************************************************************************)
Joined(g)  == {m \in DOMAIN g.members : g.members[m].awaitingJoin # "no"}
Synced(g)  == {m \in DOMAIN g.members : g.members[m].awaitingSync # "no"}
Static(g)  == {m \in DOMAIN g.members : g.members[m].instanceId # ""}
MappedMembers(g, inst) == {m \in Static(g) : g.members[m].instanceId = inst}

\* Every member has a parked JoinGroup and no id is pending (C-ST-23).
AllJoined(g) == Joined(g) = DOMAIN g.members /\ g.pendingJoin = {}

\* The identity check of every request (Kafka: CG.validateMember): the error, or
\* "" if the check passes (C-JOIN-38e..g, C-SYNC-08, C-HB-08).
MemberError(g, id, inst) ==
  CASE inst # "" /\ MappedMembers(g, inst) = {}                      -> "UNKNOWN_MEMBER_ID"
    [] inst # "" /\ MappedMembers(g, inst) # {} /\ id \notin MappedMembers(g, inst)
                                                                            -> "FENCED_INSTANCE_ID"
    [] OTHER -> IF id \in DOMAIN g.members THEN "" ELSE "UNKNOWN_MEMBER_ID"

\* Removes the ids M from the group. If the leader goes, another member leads
\* (C-TMR-10, C-JOIN-76). The caller handles the timers.
Remove(g, M) ==
  LET rest == DOMAIN g.members \ M
  IN [g EXCEPT !.members     = Without(@, M),
               !.pendingJoin = @ \ M,
               !.pendingSync = @ \ M,
               !.leader      = IF @ \notin M THEN @
                               ELSE IF rest = {} THEN "" ELSE First(rest)]

\* The answer NONE to a join: the leader receives the list of members, others an
\* empty one (C-JOIN-49, C-JOIN-51/55, C-STATIC-04).
JoinAnswer(g, c, m, skip) ==
  [api |-> "JoinGroup", to |-> c, error |-> "NONE", memberId |-> m,
   generation |-> g.generationId, leader |-> g.leader,
   skipAssignment |-> skip /\ m = g.leader,
   members |-> IF m # g.leader THEN {}
               ELSE {[memberId |-> n, metadata |-> g.members[n].metadata]
                     : n \in DOMAIN g.members}]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Preparing and completing a rebalance.                                   *)
(***************************************************************************)

\* The flag newMemberAdded ends with the join phase (C-JOIN-71).
NewMemberAddedAfterJoinPhase(g) == FALSE

\* The generation grows by one whenever a join phase ends (C-ST-21).
NextGeneration(generation) == generation + 1

\* A join phase that ends without members makes the group Empty and appends a
\* record without members (C-JOIN-47, C-ST-14).
CompleteEmpty(w) ==
  LET g == [w.g EXCEPT !.state = "Empty", !.initial = FALSE,
                       !.generationId = NextGeneration(@), !.pendingSync = {},
                       !.newMemberAdded = NewMemberAddedAfterJoinPhase(w.g)]
  IN AppendRecord([w EXCEPT !.g = g], "empty", RecordOf(g), "")

\* A join phase that ends with members starts the next generation: the leader
\* stays or a parked member takes over, every parked join is answered, all
\* session timers and the sync timer are set (C-JOIN-45, C-JOIN-48, C-ST-13).
CompleteWithMembers(w) ==
  LET parked == Joined(w.g)
      g == [w.g EXCEPT
              !.state = "CompletingRebalance", !.initial = FALSE,
              !.generationId = NextGeneration(@),
              !.leader = IF @ \in parked THEN @ ELSE First(parked),
              !.pendingSync = DOMAIN w.g.members,
              !.sessionTimers = @ \cup DOMAIN w.g.members,
              !.syncTimer = TRUE,
              !.newMemberAdded = NewMemberAddedAfterJoinPhase(w.g)]
      done == [g EXCEPT !.members =
                 [m \in DOMAIN @ |-> [@[m] EXCEPT !.isNew = FALSE,
                                                  !.awaitingJoin = "no"]]]
      ParkedRequest(m) == w.g.members[m].awaitingJoin
      Answer(m)  == JoinAnswer(g, ParkedRequest(m), m, FALSE)
  IN ReplyAll([w EXCEPT !.g = done], parked, ParkedRequest, Answer)

\* Absent members that the end of a join phase keeps: the static ones
\* (C-JOIN-44).
MayStayAbsent(g) == Static(g)

\* The join phase ends. Dynamic members that have not joined are removed. If
\* only absent static members are left, the join timer is set again (C-JOIN-44,
\* C-JOIN-46).
CompleteJoin(w) ==
  LET late == DOMAIN w.g.members \ (Joined(w.g) \cup MayStayAbsent(w.g))
      g == [Remove(w.g, late) EXCEPT
              !.joinTimer = FALSE, !.delaysLeft = 0,
              !.sessionTimers = @ \ late]
      v == [w EXCEPT !.g = g]
  IN IF DOMAIN g.members = {} THEN CompleteEmpty(v)
     ELSE IF Joined(g) = {} THEN [v EXCEPT !.g.joinTimer = TRUE]
     ELSE CompleteWithMembers(v)

\* The join phase ends early when all members have joined, but not in the
\* initial delay (C-JOIN-41).
MaybeCompleteJoin(w) ==
  IF w.g.state = "PreparingRebalance" /\ ~w.g.initial /\ AllJoined(w.g)
  THEN CompleteJoin(w) ELSE w

\* Answers every parked SyncGroup with an error, sets those members' session
\* timers, and clears all assignments (C-JOIN-42, C-SYNC-22).
FailParkedSyncs(w, error) ==
  LET ParkedRequest(m) == w.g.members[m].awaitingSync
      Answer(m)  == SyncReply(ParkedRequest(m), error, {})
      g == [w.g EXCEPT !.sessionTimers = @ \cup Synced(w.g),
                       !.members = [m \in DOMAIN @ |->
                          [@[m] EXCEPT !.awaitingSync = "no",
                                       !.assignment = {}]]]
  IN ReplyAll([w EXCEPT !.g = g], DOMAIN g.members, ParkedRequest, Answer)

\* The sync timer of the last generation is cancelled (C-JOIN-42).
SyncTimerInJoinPhase(g) == FALSE

\* A rebalance starts: parked SyncGroups fail, the sync timer is cancelled, the
\* join timer is set. An Empty group starts its initial delay. If all members
\* have joined already, the join phase ends at once (C-JOIN-42).
PrepareRebalance(w) ==
  LET v == IF w.g.state = "CompletingRebalance"
           THEN FailParkedSyncs(w, "REBALANCE_IN_PROGRESS") ELSE w
      g == [v.g EXCEPT !.state = "PreparingRebalance", !.initial = FALSE,
                       !.pendingSync = {},
                       !.syncTimer = SyncTimerInJoinPhase(v.g),
                       !.joinTimer = TRUE]
  IN IF w.g.state = "Empty"
     THEN [v EXCEPT !.g = [g EXCEPT !.initial = TRUE,
                                    !.delaysLeft = DelayWindows]]
     ELSE IF AllJoined(g) THEN CompleteJoin([v EXCEPT !.g = g])
     ELSE [v EXCEPT !.g = g]

\* A new member is added, parked, with its session timer set; the first member
\* leads (C-JOIN-40).
AddMember(w, id, inst, metadata, caller) ==
  LET member == [instanceId |-> inst, metadata |-> metadata,
                 assignment |-> {}, isNew |-> TRUE,
                 awaitingJoin |-> caller, awaitingSync |-> "no"]
      g == [w.g EXCEPT !.members = Put(@, id, member),
                       !.newMemberAdded = @ \/ w.g.initial,
                       !.leader = IF @ = "" THEN id ELSE @,
                       !.pendingJoin = @ \ {id},
                       !.sessionTimers = @ \cup {id}]
      v == [w EXCEPT !.g = g]
  IN IF g.state = "PreparingRebalance" THEN MaybeCompleteJoin(v)
     ELSE PrepareRebalance(v)
=============================================================================
